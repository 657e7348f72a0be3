"""Moved bytes as a goal: what moves least within a share of the objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from formulations import Instance, Outcome, Placement, Settings, StoppedBy
from formulations.clock import Clock
from formulations.goals.seek import improve
from formulations.result.check import check
from formulations.result.outcome import found
from formulations.settings import MOVED_BYTES, Goals
from tests.formulations.brute_force import brute_force
from tests.formulations.search.test_home import at, instance, moved

SETTINGS = Settings(work_limit=3, time_limit=None, workers=1)


def improved(problem: Instance, plan: Placement, most: int, work: float = 3) -> Outcome:
    """The outcome of a plan after the goal, within a cost."""
    before = found(problem, "cpsat", plan, StoppedBy.EXHAUSTED)
    assert before.objective is not None
    within = (most - before.objective + 0.5) / before.objective
    goals = Goals((MOVED_BYTES,), within)
    settings = replace(SETTINGS, goals=goals, work_limit=work)
    return improve(problem, before, settings, Clock(settings))


@pytest.mark.parametrize(("most", "least"), [(9, 3), (8, 4), (12, 0)])
def test_tables_return_as_far_as_the_cost_allows(most: int, least: int) -> None:
    """Tables of 5, 4 and 3 were all on rank 0: at a cost of 12 all stay, at 9 all but the smallest,
    at 8 all but that of 4; each is proved to be the least."""
    problem = instance([5, 4, 3], [[0, 1]], [0, 0, 0])
    outcome = improved(problem, at(0, 1, 1), most)
    assert outcome.placement is not None and (outcome.objective or 0) <= most
    (goal,) = outcome.goals
    assert (goal.value, goal.bound, goal.met) == (least, least, True)
    assert moved(problem, outcome.placement) == least


def test_tables_that_must_change_places_return_together() -> None:
    """The tables of 5 and 4 were exchanged beside one of 6 each. At a cost of 11 neither returns
    alone; both do together."""
    problem = instance([5, 4, 6, 6], [[0, 1]], [0, 1, 0, 1])
    outcome = improved(problem, at(1, 0, 0, 1), 11)
    assert outcome.goals[0].value == 0


def test_the_least_by_brute_force() -> None:
    """On drawn plans what moves is the least that any plan within the cost moves; the best plan's
    cost stays known, and a limit of the caller's holds."""
    draw = np.random.default_rng(3)
    for _ in range(10):
        sizes = [int(size) for size in draw.integers(1, 20, 5)]
        before, now = draw.integers(0, 3, (2, 5))
        problem = instance(sizes, [[0, 1], [2]], before.tolist())
        plan = at(*map(int, now))
        cost = check(problem, plan).objectives["busiest_rank"]
        most = int(1.2 * cost)
        outcome = improved(replace(problem, max_moved_tables=5), plan, most)
        assert outcome.placement is not None and (outcome.objective or 0) <= most
        assert (outcome.before_goals or outcome.objective) == cost or outcome.objective <= cost
        limits = range(moved(problem, plan) + 1)
        truth = min(
            limit for limit in limits
            if (brute_force(replace(problem, max_moved_bytes=limit)).objective or most + 1) <= most
        )  # fmt: skip
        assert outcome.goals[0].value == moved(problem, outcome.placement) == truth
