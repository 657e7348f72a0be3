"""Goals of a caller's own within a share of the objective: moved bytes, and the use of a resource
at its fullest place."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from formulations import (
    Instance,
    InstanceBuilder,
    Objective,
    Outcome,
    Placement,
    Settings,
    StoppedBy,
)
from formulations.clock import Clock
from formulations.goals.seek import improve
from formulations.instance import Scope, Where
from formulations.instance.build import Block, Shard
from formulations.result.check import check, compute_loads
from formulations.result.outcome import found
from formulations.settings import MOVED_BYTES, Goals
from tests.formulations.brute_force import brute_force
from tests.formulations.search.test_home import instance, moved, whole

SETTINGS = Settings(work_limit=3, time_limit=None, workers=1)


def improved(
    problem: Instance, plan: Placement, most: int, order: tuple[str, ...] = (MOVED_BYTES,),
    slack: float = 0.0, work: float = 3,
) -> Outcome:  # fmt: skip
    """The outcome of a plan after the goals, within a cost."""
    before = found(problem, "cpsat", plan, StoppedBy.EXHAUSTED)
    assert before.objective is not None
    within = (most - before.objective + 0.5) / before.objective
    settings = replace(SETTINGS, goals=Goals(order, within, slack=slack), work_limit=work)
    return improve(problem, before, settings, Clock(settings))


@pytest.mark.parametrize(("most", "least"), [(9, 3), (8, 4), (12, 0)])
def test_tables_return_as_far_as_the_cost_allows(most: int, least: int) -> None:
    """Tables of 5, 4 and 3 were all on rank 0: at a cost of 12 all stay, at 9 all but the smallest,
    at 8 all but that of 4; each is proved to be the least."""
    problem = instance([5, 4, 3], [[0, 1]], [0, 0, 0])
    outcome = improved(problem, whole(0, 1, 1), most)
    assert outcome.placement is not None and (outcome.objective or 0) <= most
    (goal,) = outcome.goals
    assert (goal.value, goal.bound, goal.met) == (least, least, True)
    assert moved(problem, outcome.placement) == least


def test_tables_that_must_change_places_return_together() -> None:
    """The tables of 5 and 4 were exchanged beside one of 6 each. At a cost of 11 neither returns
    alone; both do together."""
    problem = instance([5, 4, 6, 6], [[0, 1]], [0, 1, 0, 1])
    outcome = improved(problem, whole(1, 0, 0, 1), 11)
    assert outcome.goals[0].value == 0


def test_the_least_by_brute_force() -> None:
    """On drawn plans what moves is the least that any plan within the cost moves; the best plan's
    cost stays known, and a limit of the caller's holds."""
    draw = np.random.default_rng(3)
    for _ in range(10):
        sizes = [int(size) for size in draw.integers(1, 20, 5)]
        before, now = draw.integers(0, 3, (2, 5))
        problem = instance(sizes, [[0, 1], [2]], before.tolist())
        plan = whole(*map(int, now))
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


def two_ranks(
    tables: list[tuple[dict[str, int], tuple[int, ...]]], objective: str, room: int = 2**50
) -> Instance:
    """Whole tables with these uses, and costs by phase, on two ranks."""
    resources = [(name, Scope.RANK, [room] * 2) for name in tables[0][0]]
    phases = [f"p{i}" for i in range(len(tables[0][1]))]
    builder = InstanceBuilder([[0, 1]], phases, resources, Objective(objective))
    for number, (use, cost) in enumerate(tables):
        builder.add_table(f"t{number}")
        builder.add_option("whole", [Block(Where.ANY_RANK, [Shard(use, cost)])])
    return builder.build()


def drawn(objective: str, seed: int) -> tuple[Instance, list[Placement], list[int]]:
    """Six tables with a use of hbm and of stash, all their plans, and what these cost."""
    random = np.random.default_rng(seed)
    tables = [
        ({"hbm": int(random.integers(1, 40)), "stash": int(random.integers(1, 40))},
         tuple(map(int, random.integers(1, 30, 2))))
        for _ in range(6)
    ]  # fmt: skip
    problem = two_ranks(tables, objective)
    plans = [whole(*ranks) for ranks in itertools.product(range(2), repeat=6)]
    return problem, plans, [check(problem, plan).objectives[objective] for plan in plans]


def fullest(problem: Instance, plan: Placement) -> list[int]:
    """Use of the fullest rank, by resource."""
    return [int(use.max()) for use in compute_loads(problem, plan).use]


@pytest.mark.parametrize("objective", ["busiest_rank", "total", "step_time"])
@pytest.mark.parametrize("percent", [0, 10, 60])
def test_the_fullest_rank_against_all_plans(objective: str, percent: int) -> None:
    """Value and bound are the least over all plans that cost no more than the limit; then those of
    the next resource, over the plans that use at most a quarter more of the first."""
    for seed in range(3):
        problem, plans, costs = drawn(objective, seed)
        best = min(costs)
        most = best + best * percent // 100
        within = [p for p, cost in zip(plans, costs, strict=True) if cost <= most]
        first = min(fullest(problem, plan)[0] for plan in within)
        near = [f for f in (fullest(problem, p) for p in within) if f[0] <= first + first // 4]
        truth = [first, min(use[1] for use in near)]
        order = ("hbm", "stash")
        outcome = improved(problem, plans[costs.index(best)], most, order, slack=0.25, work=20)
        assert outcome.placement is not None and (outcome.objective or 0) <= most
        hbm, stash = outcome.goals
        assert [hbm.bound, stash.value, stash.bound] == [first, truth[1], truth[1]]
        used = fullest(problem, outcome.placement)
        assert used[0] <= first + first // 4 and used[1] == stash.value


def test_a_goal_needs_its_resource() -> None:
    """A name that is no resource is no goal of the instance; a capacity is only reduced."""
    problem = two_ranks([({"stash": 5}, (1,)), ({"stash": 4}, (1,))], "total", room=7)
    outcome = improved(problem, whole(0, 1), 2, ("hbm", "stash"))
    assert [(goal.goal, goal.value) for goal in outcome.goals] == [("stash", 5)]
