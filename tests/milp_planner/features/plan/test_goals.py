"""The words for goals after the objective: what is reached, what is least, what was given up."""

from formulations.result.outcome import BoundSource, GoalReached, StoppedBy, found
from milp_planner.features.plan.goals import given_up, goals_told
from milp_planner.features.plan.verdict import draw_verdict, verdict_of
from milp_planner.features.report.page import strip
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
    """Least if it meets the bound, open with a bound or without, even enough; 0 is not shown."""
    assert goals_told(GOALS, "ps") == [
        "fullest rank 49.5% of usable (even enough)",
        "32 shards (open, at least 25)",
        "total 294.7 ms (least)", "3 tables moved (open)",
    ]  # fmt: skip
    assert goals_told(GOALS[:1], "ps") == []
    stepped = GoalReached("even_memory", "rank", 748, 701, True)
    assert goals_told([stepped], "ps") == [
        "fullest rank 74.8% of usable (least to within a step, none is below 70.1%)"
    ]


def test_what_was_given_up_is_told_beside_the_best_plan() -> None:
    """A hundred-thousandth of the best plan's cost is given up; a plan proved, or only found."""
    assert given_up(100_001, None, True, "ps") == []
    assert given_up(100_001, 100_000, True, "") == ["the best plan costs 100,000 (proved)"]
    assert given_up(100_001, 100_000, False, "") == [
        "0.001% above the best plan found, 100,000: given up for goals after the objective"
    ]


def test_a_plan_that_gave_something_up_is_optimal_but_for_that() -> None:
    """If the best plan is proved, strip and page call this one optimal but for what it gave up, in
    the colour of optimal, with the gap and the best plan's cost; they do not say that the search
    was exhausted. If the best plan is only found, they say nothing of the kind."""
    outcome = found(
        example(), "cpsat", placement(), StoppedBy.EXHAUSTED, 27, BoundSource("cpsat", True)
    )
    outcome = outcome.with_(goals=GOALS, before_goals=27)
    info = verdict_of(example(), outcome)
    text = drawn(draw_verdict(info))
    assert "OPTIMAL BY CPSAT but for 3.8% given up for goals, nothing certified" in text
    assert info.status == "feasible" and "no more to try" not in text and "gap 3.6%" in text
    assert "the best plan costs 27 ps (proved)" in text
    assert "32 shards (open, at least 25)" in text
    first = strip(info)[0]
    assert (first.label, first.style) == ("status", "optimal") and "shards" not in first.note
    only_found = verdict_of(example(), outcome.with_(before_goals=26))
    assert (
        "FEASIBLE" in drawn(draw_verdict(only_found))
        and "no more to try" in strip(only_found)[0].note
    )
