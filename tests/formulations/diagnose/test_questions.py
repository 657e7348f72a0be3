"""The brute-force optimum of each diagnostic instance answers the question that it encodes.

The least use of the fullest rank within a limit on the objective, against brute force.
"""

import itertools
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, InstanceBuilder, Objective, Placement, Scope, Settings
from formulations.capacity.budget import Budget
from formulations.diagnose.evened import least_fullest, no_fuller
from formulations.diagnose.questions import (
    DROPPED,
    constraints_of,
    droppable,
    lift,
    only,
    use_as_cost,
    with_capacity,
)
from formulations.instance import Where
from formulations.instance.build import Block, Shard
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.validate import validate
from formulations.result.check import check, compute_loads
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.formulations.strategies import instances

small = instances(max_tables=3, max_combinations=400, constraints=False)


def fits(instance: Instance) -> bool:
    """Whether brute force finds a plan."""
    return brute_force(instance).objective is not None


def least_by_trying(instance: Instance, resource: int, most: int) -> int | None:
    """The smallest uniform capacity with a plan, found by trying every one."""
    name = instance.resources[resource].name
    tried = (c for c in range(most + 1) if fits(with_capacity(instance, [name], c)))
    return next(tried, None)


@given(small, st.data())
@settings(max_examples=40, deadline=None)
def test_the_fullest_rank_is_the_least_capacity(instance: Instance, data: st.DataObject) -> None:
    """Of a rank resource, least use has the optimum that trying every capacity finds."""
    if not instance.resources:
        return
    index = data.draw(st.integers(0, len(instance.resources) - 1))
    resource = instance.resources[index]
    most = 31
    truth = least_by_trying(instance, index, most)
    if resource.scope == Scope.RANK and truth is not None:
        asked = use_as_cost(instance, [resource.name])
        validate(asked)
        assert brute_force(asked).objective == truth


@given(small)
@settings(max_examples=40, deadline=None)
def test_fewest_drops_question(instance: Instance) -> None:
    """The droppable instance's optimum is the fewest tables whose removal leaves a plan."""
    question = droppable(instance)
    validate(question)
    asked = brute_force(question).objective
    names = set(instance.table_names)
    truth = next(
        size
        for size in range(len(names) + 1)
        if any(fits(only(instance, names - set(d))) for d in combinations(sorted(names), size))
    )
    assert asked == truth


def test_lifting_names_and_removes_one_constraint() -> None:
    """Every constraint of an instance can be lifted by the name it is listed under."""
    instance = two_modes(hbm=3, ddr=100)
    assert constraints_of(instance) == ["hbm", "ddr"]
    assert not fits(instance)
    assert fits(lift(instance, "hbm"))
    assert not fits(lift(instance, "ddr"))


def test_restricting_drops_constraints_on_absent_tables() -> None:
    """Pins and the current plan of tables left out fall away, so the rest stays valid."""
    document = instance_to_dict(two_modes())
    document["pins"] = [{"table": "a", "option": "HYBRID"}]
    document["current"] = {"a": {"option": "HYBRID", "ranks": [[0]]}}
    document["max_moved_tables"] = 0
    instance = instance_from_dict(document)
    rest = only(instance, ["b"])
    validate(rest)
    assert (rest.pins, rest.current, rest.max_moved_tables) == ((), (), None)
    assert rest.table_names == ("b",)
    both = only(instance, ["a", "b"])
    assert instance_to_dict(both) == instance_to_dict(instance)
    pinned = droppable(instance)
    validate(pinned)
    assert pinned.option_names[pinned.pins[0].option] == "HYBRID"
    assert pinned.option_names[int(pinned.table_options[1]) - 1] == DROPPED


@given(small, st.data())
@settings(max_examples=40, deadline=None)
def test_restricting_equals_writing_less(instance: Instance, data: st.DataObject) -> None:
    """Restricting an instance to some tables equals reading a file with only these tables."""
    names = {name for name in instance.table_names if data.draw(st.booleans())}
    document = instance_to_dict(instance)
    document["tables"] = [t for t in document["tables"] if t["name"] in names]
    found, written = only(instance, names), instance_from_dict(document)
    validate(found)
    assert instance_to_dict(found) == instance_to_dict(written)


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
