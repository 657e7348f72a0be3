"""Rows of a batch, what each is compared with, and curves, by counting.

Which points of a sweep leave more memory than others, and which instances differ in it alone.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.plans.compile import compile_for
from scenarios import catalog
from scenarios.batch.curves import contradictions, profiles_of, rows_of
from scenarios.batch.neighbours import leaves_as_much, shape_of, without_memory
from scenarios.batch.vary import vary_cluster, vary_model
from tests.scenarios.batch.records import failed, proved, record

_VALUES = st.one_of(st.none(), st.integers(1, 8))


@given(st.lists(st.tuples(_VALUES, _VALUES, _VALUES), min_size=1, max_size=8), st.integers(1, 12))
def test_the_profile_is_dolan_and_mores(values: list[tuple[Any, ...]], quarters: int) -> None:
    """ρ(τ) by counting: problems with a plan within τ of the best, over problems with any plan."""
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
    """By hand: a is faster on one problem, b is alone on the other; the heuristic is left out."""
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
    """A single series has nothing to be compared with."""
    assert profiles_of(rows_of([proved(5), proved(6, axes={"hbm": 1})])) == ()


def test_a_row_is_held_against_the_best_of_its_inputs() -> None:
    """By hand: 12 is 20% above a proved 10, a gap of 2/12; other inputs do not count."""
    rows = rows_of(
        [record(objective=12), proved(10), record(objective=7, axes={"hbm": 5}), failed()]
    )
    assert [row.best for row in rows] == [10, 10, 7, 10]
    assert rows[0].above_best == pytest.approx(0.2)
    assert rows[0].best_gap == pytest.approx(2 / 12)
    assert (rows[1].above_best, rows[1].best_gap) == (0.0, 0.0)
    assert (rows[2].above_best, rows[2].best_gap) == (0.0, None)
    assert (rows[3].above_best, rows[3].best_gap) == (None, None)
    assert rows[3].note == "BadInput: <b>no</b> such thing"


def test_the_largest_bound_counts() -> None:
    """A bound in floating point counts as well, unless a plan refutes it."""
    loose = record(bound=9, bound_source="highs, floating point", objective=20)
    exact = record(bound=8, bound_source="cpsat, exact", objective=20, formulation="cpsat")
    assert {row.best_bound for row in rows_of([loose, exact])} == {9}
    plan = record(objective=8, formulation="greedy")
    assert {row.best_bound for row in rows_of([loose, exact, plan])} == {8}


def test_settings_make_a_series_of_their_own() -> None:
    """Two numbers of bins are compared as two formulations."""
    rows = rows_of([record(options={"bins": 5}), record()])
    assert [row.series for row in rows] == ["dp bins=5", "dp"]
    assert rows[0].instance == rows[1].instance


def test_contradictions_are_told() -> None:
    """A bound above another row's plan, and a proof of infeasibility beside a plan."""
    fine = [record(objective=12), proved(10)]
    assert contradictions(rows_of(fine)) == ()
    above = contradictions(rows_of([record(objective=9), proved(10)]))
    assert len(above) == 1 and "the bound of cpsat, 10, is above a plan's 9" in above[0]
    none = record(status="infeasible", objective=None, formulation="mip")
    refuted = contradictions(rows_of([record(objective=9), none]))
    assert len(refuted) == 1 and "mip proved it infeasible" in refuted[0]


def test_best_and_bound_come_from_every_objective_of_the_inputs() -> None:
    """A plan for step time beats busiest_rank's own plan, whose bound holds for both."""
    busiest = record(objective_kind="busiest_rank", objective=20, bound=9)
    step = record(objective_kind="step_time", objective=12, bound=5)
    busiest["objectives"] = {"busiest_rank": 20, "step_time": 21}
    step["objectives"] = {"busiest_rank": 11, "step_time": 12}
    first, second = rows_of([busiest, step])
    assert (first.best, first.best_bound) == (11, 9) and (first.above_best or 0) > 0
    assert (second.best, second.best_bound) == (12, 9)


@pytest.mark.parametrize(
    ("more", "less", "so"),
    [
        ({"hbm": 9, "ddr": 5}, {"hbm": 8, "ddr": 5}, True),
        ({"hbm": 9, "ddr": 4}, {"hbm": 8, "ddr": 5}, False),
        ({"hbm_percent": "9/2"}, {"hbm_percent": "10"}, True),
        ({"hbm_percent": "10"}, {"hbm_percent": "9/2"}, False),
        ({"hbm": 9, "batch": 2}, {"hbm": 8, "batch": 1}, False),
        ({"hbm": 9}, {"ddr": 9}, False),
        ({}, {}, True),
        ({"cluster.hbm": "40GiB"}, {"cluster.hbm": "8GiB"}, True),
        ({"cluster.hbm": "8GiB"}, {"cluster.hbm": "40GiB"}, False),
        ({"cluster.hbm": "+8GiB"}, {"cluster.hbm": "+4GiB"}, False),
        ({"reservations.hbm_percent": "5%"}, {"reservations.hbm_percent": "10%"}, True),
        ({"cluster.machines.0.ddr": "2TB"}, {"cluster.machines.0.ddr": "1TB"}, False),
        ({"workload.dedup": True}, {"workload.dedup": True}, True),
    ],
)
def test_more_of_everything(more: dict[str, Any], less: dict[str, Any], so: bool) -> None:
    """Larger memories and smaller reservations, by any path; all other axes are equal."""
    assert leaves_as_much(more, less) is so
    others = {"batch", "workload.dedup", "cluster.machines.0.ddr"}
    assert without_memory(more).keys() == more.keys() & others


def test_shapes_are_equal_where_memory_differs() -> None:
    """HBM, DDR and reservations change no option and no price, even where other moments of a step
    limit them; a larger batch does."""
    model = catalog.find_model("dlrmv4-yambda5b")
    cluster = catalog.find_cluster("8xb200-tight")

    def shape(batch: int = 0, **axes: Any) -> str:
        varied = vary_model(model, {"batch": batch} if batch else {})
        return shape_of(compile_for(varied, vary_cluster(cluster, axes), "step_time").instance)

    assert shape() == shape(hbm=2**35) == shape(ddr=2**41) == shape(fragmentation="3")
    assert shape() != shape(batch=64)
