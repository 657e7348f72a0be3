"""Rows of a batch: what each is compared with, and results that cannot all be right."""

from __future__ import annotations

import pytest

from scenarios.batch.curves import contradictions, rows_of
from tests.scenarios.batch.records import failed, proved, record


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
    """A plan for the step time beats busiest_rank's own plan, whose bound holds for both
    objectives."""
    busiest = record(objective_kind="busiest_rank", objective=20, bound=9)
    step = record(objective_kind="step_time", objective=12, bound=5)
    busiest["objectives"] = {"busiest_rank": 20, "step_time": 21}
    step["objectives"] = {"busiest_rank": 11, "step_time": 12}
    first, second = rows_of([busiest, step])
    assert (first.best, first.best_bound) == (11, 9) and (first.above_best or 0) > 0
    assert (second.best, second.best_bound) == (12, 9)
