"""Curves of a batch, compared with their definitions by counting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.batch.curves import profiles_of, rows_of
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
