"""The least use of the fullest rank within a limit on the objective, against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from formulations import Instance, InstanceBuilder, Objective, Placement, Settings
from formulations.capacity.budget import Budget
from formulations.diagnose.evened import least_fullest, no_fuller
from formulations.instance import Scope, Where
from formulations.instance.build import Block, Shard
from formulations.result.check import check, compute_loads

RANKS = 2


def instance(
    tables: Sequence[tuple[int, tuple[int, ...]]], objective: Objective, room: int = 2**50
) -> Instance:
    """Whole tables of this use and cost by phase, on two ranks."""
    phases = [f"p{i}" for i in range(len(tables[0][1]))]
    resource = ("stash", Scope.RANK, [room] * RANKS)
    builder = InstanceBuilder([list(range(RANKS))], phases, [resource], objective)
    for number, (use, cost) in enumerate(tables):
        builder.add_table(f"t{number}")
        builder.add_option("whole", [Block(Where.ANY_RANK, [Shard({"stash": use}, cost)])])
    return builder.build()


def every_plan(problem: Instance) -> list[Placement]:
    """All placements of whole tables."""
    tables = problem.num_tables
    return [
        Placement(np.arange(tables), [[np.array([rank])] for rank in ranks])
        for ranks in itertools.product(range(RANKS), repeat=tables)
    ]


def fullest_of(problem: Instance, plan: Placement) -> int:
    """Use of the fullest rank."""
    return int(compute_loads(problem, plan).use[0].max())


@pytest.mark.parametrize("objective", ["busiest_rank", "total", "step_time"])
@pytest.mark.parametrize("percent", [0, 10, 60])
@pytest.mark.parametrize("seed", range(4))
def test_against_all_plans(objective: str, percent: int, seed: int) -> None:
    """Value and bound are the least over all plans that cost no more than the limit."""
    random = np.random.default_rng(seed)
    tables = [
        (int(random.integers(1, 40)), tuple(map(int, random.integers(1, 30, 2)))) for _ in range(6)
    ]
    problem = instance(tables, Objective(objective))
    plans = every_plan(problem)
    costs = [check(problem, plan).objectives[objective] for plan in plans]
    best = min(costs)
    most = best + best * percent // 100
    truth = min(
        fullest_of(problem, plan) for plan, cost in zip(plans, costs, strict=True) if cost <= most
    )
    start = plans[costs.index(best)]
    found = least_fullest(problem, "stash", most, start, Budget(Settings(time_limit=30, workers=1)))
    assert check(problem, found.placement).objectives[objective] <= most
    assert (found.fullest, found.bound) == (truth, truth)
    assert fullest_of(problem, found.placement) == truth


def test_without_time_the_start_is_returned() -> None:
    """A budget that is over changes nothing, and its bound claims nothing."""
    problem = instance([(5, (1,)), (4, (1,)), (3, (1,))], Objective.TOTAL)
    start = every_plan(problem)[0]
    budget = Budget(Settings(time_limit=1e-6))
    while not budget.over():
        pass
    found = least_fullest(problem, "stash", 3, start, budget)
    assert (found.placement, found.fullest, found.bound) == (start, 12, 0)


def test_a_capacity_is_only_reduced() -> None:
    """The lower of the two limits holds at every place."""
    problem = instance([(5, (1,))], Objective.TOTAL, room=7)
    assert no_fuller(problem, "stash", 9).resources[0].capacity.tolist() == [7, 7]
    assert no_fuller(problem, "stash", 6).resources[0].capacity.tolist() == [6, 6]
