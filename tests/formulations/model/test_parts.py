"""Neighbourhoods: some tables and ranks open, the rest stays; all open is the exact model."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.cpsat import Found
from formulations.goals.neighbourhoods import Chooser
from formulations.instance import Current, Instance, Objective, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.presolve import usable
from formulations.result.check import check, compute_loads
from formulations.result.placement import Placement
from tests.formulations.brute_force import brute_force
from tests.formulations.model.solved import broken_rows, solved
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def opened(placement: Placement, tables: object, **rest: object) -> Parts:
    """A neighbourhood of a plan, without cuts."""
    wanted = np.asarray(tables, dtype=np.int64)
    return Parts(base=placement, tables=wanted, cuts=False, **rest)  # type: ignore[arg-type]


@LOOSE
@given(instances())
def test_all_open_it_is_exact(instance: Instance) -> None:
    """With every table and rank open, brute force's optimum is reached by a checked plan."""
    truth = brute_force(instance)
    if truth.placement is None:
        return
    free = np.ones(instance.num_ranks, dtype=bool)
    parts = opened(truth.placement, range(instance.num_tables), keep=usable(instance))
    model, answer = solved(instance, by_rank(instance, free), parts)
    assert (answer.status, answer.value) == (Found.OPTIMAL, truth.objective)
    assert answer.values is not None
    verdict = check(instance, decode(model, answer.values))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective


@LOOSE
@given(instances(), st.data())
def test_a_part_is_solved_to_its_optimum(instance: Instance, data: st.DataObject) -> None:
    """With any tables open on all ranks the optimum is found; the others keep their options."""
    truth = brute_force(instance)
    if truth.placement is None or not instance.num_tables:
        return
    tables = data.draw(st.sets(st.integers(0, instance.num_tables - 1), min_size=1))
    model, answer = solved(instance, None, opened(truth.placement, sorted(tables)))
    assert answer.values is not None and answer.status == Found.OPTIMAL
    hint = encode(model, truth.placement)
    assert hint is not None and broken_rows(model, hint) == []
    plan = decode(model, answer.values)
    verdict = check(instance, plan)
    assert verdict.feasible, verdict.violations
    value = verdict.objectives[instance.objective.value]
    assert value == truth.objective == answer.value
    closed = [t for t in range(instance.num_tables) if t not in tables]
    assert (plan.options[closed] == truth.placement.options[closed]).all()


@LOOSE
@given(instances())
def test_a_part_keeps_the_plan_feasible(instance: Instance) -> None:
    """Any part that the search draws, with ranks closed, gives a feasible plan that is no worse."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None or not instance.num_tables:
        return
    load = compute_loads(instance, truth.placement)
    keep = usable(instance)
    _, tables, free = Chooser(instance, keep, random.Random(4)).draw(truth.placement, load)
    limit = None if instance.objective == Objective.TOTAL else truth.objective
    parts = opened(truth.placement, tables, keep=keep, limit=limit)
    model, answer = solved(instance, by_rank(instance, free), parts)
    assert answer.status == Found.OPTIMAL and answer.values is not None
    verdict = check(instance, decode(model, answer.values))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective


@LOOSE
@given(instances(objectives=[*Objective][1:]))
def test_repairing_reaches_a_plan_within_the_limit(instance: Instance) -> None:
    """With the optimum as the limit, a repair leaves no overflow."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None:
        return
    repair = Parts(repair=True, limit=truth.objective)
    model, answer = solved(instance, None, repair)
    assert (answer.status, answer.value) == (Found.OPTIMAL, 0) and answer.values is not None
    verdict = check(instance, decode(model, answer.values))
    assert verdict.feasible and verdict.objectives[instance.objective.value] == truth.objective
    values = encode(model, truth.placement)
    assert values is not None and model.linear.value(values) == 0


def overfull() -> tuple[Instance, Placement]:
    """Two shards of 6 on one rank of 10, the other rank empty."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    for table in "ab":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [1])])])
    zero = [[np.asarray([0])], [np.asarray([0])]]
    return builder.build(), Placement(np.arange(2), zero)


def test_repairing_by_hand() -> None:
    """An open table moves to the other rank; with that closed, 2 of the 12 bytes do not fit."""
    instance, plan = overfull()
    assert solved(instance, None, opened(plan, [1], repair=True))[1].value == 0
    closed = by_rank(instance, np.asarray([True, False]))
    answer = solved(instance, closed, opened(plan, [1], repair=True))[1]
    assert answer.value == 2
    assert solved(instance, closed, opened(plan, [1]))[1].status == Found.INFEASIBLE


def test_closed_moves_count() -> None:
    """The one move allowed is used by a closed table, so the open one must stay where it was."""
    builder = InstanceBuilder([[0, 1]], ["p"], [], "busiest_rank")
    for table in "ab":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [1])])])
    current = [Current(0, 0, ((0,),)), Current(1, 1, ((1,),))]
    instance = builder.build(current=current, max_moved_tables=1)
    plan = Placement(np.arange(2), [[np.asarray([1])], [np.asarray([1])]])
    model, answer = solved(instance, None, opened(plan, [1]))
    assert answer.value == 2 and answer.values is not None
    assert decode(model, answer.values).ranks[1][0].tolist() == [1]
