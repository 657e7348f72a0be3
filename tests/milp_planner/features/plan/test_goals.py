"""Goals after the objective in words: what is reached, what is least, what was given up."""

from __future__ import annotations

from dataclasses import replace

from formulations.result.outcome import BoundSource, GoalReached, StoppedBy, found
from milp_planner.features.plan.goals import given_up, goal_lines
from milp_planner.features.plan.verdict import draw_verdict, verdict_of
from tests.milp_planner.features.example import example, placement
from tests.milp_planner.features.plan.test_ranks import drawn

GOALS = (
    GoalReached("host_memory", "", 0, 0, True),
    GoalReached("even_memory", "rank", 495, None, True),
    GoalReached("shards", "", 32, 25, False),
    GoalReached("total", "", 294_700_000_000, 294_700_000_000, True),
    GoalReached("moves", "", 3, None, False),
)


def test_every_goal_says_whether_it_could_be_less() -> None:
    """Least where the bound is met, open with or without a bound, even enough; nothing of 0."""
    assert goal_lines(GOALS, "ps") == [
        "after that: fullest rank 49.5% (even enough), 32 shards (open, at least 25), "
        "total 294.7 ms (least), 3 tables moved (open)"
    ]
    assert goal_lines(GOALS[:1], "ps") == []
    stepped = GoalReached("even_memory", "rank", 748, 701, True)
    assert goal_lines([stepped], "ps") == [
        "after that: fullest rank 74.8% (least but for a step, none is below 70.1%)"
    ]


def test_what_was_given_up_is_told_beside_the_best_plan() -> None:
    """One in a hundred thousand of a best plan that is proved, or only found."""
    assert given_up(100_001, None, True, "ps") == []
    assert given_up(100_001, 100_000, True, "") == [
        "0.001% above the best plan, 100,000 (proved): given up for the goals after the objective"
    ]
    assert "100,000 found" in given_up(100_001, 100_000, False, "")[0]


def test_a_plan_that_gave_something_up_is_not_told_as_optimal() -> None:
    """The strip shows a gap and what the best plan costs, not that the search was exhausted."""
    outcome = found(
        example(), "cpsat", placement(), StoppedBy.EXHAUSTED, 27, BoundSource("cpsat", True)
    )
    outcome = outcome.with_(goals=GOALS, before_goals=27)
    text = drawn(draw_verdict(verdict_of(example(), outcome)))
    assert "FEASIBLE" in text and "OPTIMAL" not in text and "no more to try" not in text
    assert "3.7% above the best plan, 27 ps (proved)" in text
    assert "32 shards (open, at least 25)" in text
    info = replace(verdict_of(example(), outcome), before_goals=None)
    assert "no more to try" in drawn(draw_verdict(info))
