"""Curves of a batch, against their definitions counted out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.features.batch.curves import bins_of, cactus_of, profiles_of, rows_of, sweeps_of
from tests.milp_planner.features.batch.records import failed, proved, record

_VALUES = st.one_of(st.none(), st.integers(1, 8))


@given(st.lists(st.tuples(_VALUES, _VALUES, _VALUES), min_size=1, max_size=8), st.integers(1, 12))
def test_the_profile_is_dolan_and_mores(values: list[tuple[Any, ...]], quarters: int) -> None:
    """ρ(τ) counted out: problems with a plan within τ of the best, over problems with any plan."""
    records = [
        record(axes={"hbm": i}, formulation=name, objective=value)
        if value is not None else failed(axes={"hbm": i}, formulation=name)
        for i, point in enumerate(values) for name, value in zip("abc", point, strict=True)
    ]  # fmt: skip
    solved = [point for point in values if any(value is not None for value in point)]
    found = profiles_of(rows_of(records))
    assert len(found) == (1 if solved else 0)
    tau = quarters / 4 + 0.75
    for profile in found:
        assert profile.problems == len(solved)
        for curve in profile.curves:
            mine = "abc".index(curve.series)
            within = sum(
                point[mine] is not None
                and point[mine] <= tau * min(v for v in point if v is not None) + 1e-9
                for point in solved
            )
            assert curve.at(tau + 1e-9) == pytest.approx(within / len(solved))


def test_time_counts_for_proofs_alone() -> None:
    """By hand: a is the faster on one problem, b alone on the other; the heuristic is left out."""
    rows = rows_of([
        proved(5, seconds=1.0),
        record(formulation="mip", status="optimal", objective=5, seconds=4.0),
        record(objective=6, seconds=0.1),
        record(axes={"hbm": 1}, formulation="cpsat", objective=7, seconds=9.0),
        record(axes={"hbm": 1}, formulation="mip", status="infeasible", objective=None,
               seconds=2.0),
    ])  # fmt: skip
    by_time = profiles_of(rows)[-1]
    assert (by_time.measure, by_time.problems) == ("seconds", 2)
    assert {c.series: c.points for c in by_time.curves} == {
        "cpsat": ((1.0, 0.5),),
        "mip": ((1.0, 0.5), (4.0, 1.0)),
    }


def test_one_series_alone_has_no_profile() -> None:
    """Nothing can be compared."""
    assert profiles_of(rows_of([proved(5), proved(6, axes={"hbm": 1})])) == ()


def test_the_cactus_counts_proofs_in_time() -> None:
    """Sorted times of optimal and infeasible answers; nothing else is a proof."""
    rows = rows_of([
        proved(5, seconds=3.0), proved(5, seconds=1.0, axes={"hbm": 1}), record(),
        record(formulation="cpsat", axes={"hbm": 2}, seconds=0.5),
    ])  # fmt: skip
    cactus = cactus_of(rows)
    assert cactus.scenarios == {"cpsat": 3, "dp": 1}
    (curve,) = cactus.curves
    assert curve.points == ((1.0, 1.0), (3.0, 2.0))
    assert [curve.at(t) for t in (0.5, 1.0, 2.9, 3.0)] == [0, 1, 1, 2]


def test_every_scenario_is_a_point_of_the_bins() -> None:
    """By hand: at 10 bins one of two plans is exact; what has no plan is counted, not drawn."""
    options = [{"hbm_bins_per_device": bins} for bins in (10, 100)]
    records: list[dict[str, Any]] = []
    for place, objectives in enumerate(((12, 10), (10, None))):
        where = {"axes": {"hbm": place}}
        records.append(proved(10, **where))
        records += [
            record(objective=o, options=bins, status="feasible" if o else "unknown", **where)
            for o, bins in zip(objectives, options, strict=True)
        ]
    (bins,) = bins_of(rows_of(records))
    assert [(p.bins, p.gap) for p in bins.points] == [
        (10, pytest.approx(2 / 12)),
        (100, 0),
        (10, 0),
    ]
    few, many = bins.columns
    assert (few.bins, few.scenarios, few.found, few.exact) == (10, 2, 2, 1)
    assert few.worst == pytest.approx(2 / 12) and few.median == pytest.approx(1 / 12)
    assert (many.scenarios, many.found, many.exact, many.worst) == (2, 1, 1, 0.0)


def test_one_number_of_bins_is_no_sweep() -> None:
    """Nothing varies, nothing is drawn."""
    assert bins_of(rows_of([record(options={"hbm_bins_per_device": 10})])) == ()


def test_time_against_what_is_swept() -> None:
    """The median of the plans at each number; names, failures and constants draw nothing."""
    records = [
        record(axes={"hbm": hbm, "profile": "h100", "skew": 1.0}, objective=value, seed=seed)
        for hbm, values in ((2, (9, 5, 7)), (1, (20,))) for seed, value in enumerate(values)
    ]  # fmt: skip
    records.append(failed(axes={"hbm": 4, "profile": "h100", "skew": 1.0}))
    (swept,) = sweeps_of(rows_of(records))
    assert (swept.axis, swept.objective_kind) == ("hbm", "total")
    assert [(c.series, c.points) for c in swept.curves] == [("dp", ((1.0, 20), (2.0, 7)))]
