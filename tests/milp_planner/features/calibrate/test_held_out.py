"""Cross-validation of a step model: exact times, too few steps, and steps that differ."""

from __future__ import annotations

from dataclasses import replace

from milp_planner.features.calibrate.held_out import cross_validated
from milp_planner.features.calibrate.steps import FITTED, draw_steps
from tests.milp_planner.features.calibrate.test_step_fit import made_up

SMALL = draw_steps(FITTED, 60, most=2**24, moved=2**22)
LARGE = draw_steps(replace(FITTED, batches=(8193, 20_000)), 12, most=2**24, moved=2**24)


def test_exact_times_are_predicted_without_having_been_seen() -> None:
    """Every step counts once in every part, by size; the fit knows the law and is right."""
    rows = cross_validated(made_up(SMALL + LARGE), "ddr")
    counts = {(row.part, row.size): row.steps for row in rows}
    assert counts["lookup", "small"] == 60 and counts["lookup", "training size"] == 12
    assert counts["update adam", "small"] == 20 and counts["update adam", "training size"] == 4
    assert all(row.median < 0.03 for row in rows)


def test_a_step_is_not_predicted_by_itself() -> None:
    """A step that takes thrice as long as the law of all others is said to be far off."""
    odd = made_up(LARGE)
    odd = {
        spec: replace(s, parts={p: (3 * v[0],) for p, v in s.parts.items()})
        for spec, s in odd.items()
    }
    one = dict([*odd.items()][:1])
    rows = cross_validated(made_up(SMALL) | one, "ddr")
    (row,) = (r for r in rows if (r.part, r.size) == ("lookup", "training size"))
    assert row.steps == 1 and row.median > 0.5


def test_too_few_steps_say_nothing() -> None:
    """Twelve steps are needed; without two of them, there is no model."""
    assert cross_validated(made_up(SMALL[:12]), "ddr") == []
