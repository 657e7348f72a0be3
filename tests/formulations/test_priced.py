"""A price of moves built into an instance: the least sum of objective and price, by brute force."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Placement, Settings, solve
from formulations.errors import InstanceError
from formulations.evidence.verify import verify
from formulations.instance import Current, Objective
from formulations.instance.validate import validate
from formulations.priced import PHASE, priced
from formulations.result.check import check, moved_bytes, moved_tables
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built
from tests.formulations.strategies import instances


@st.composite
def moving(draw: st.DrawFn) -> tuple[Instance, Placement]:
    """An instance and its plan in production, which is possible but need not be cheap."""
    instance = draw(instances(max_tables=3, constraints=False, max_combinations=500))
    assume(instance.num_tables and len({len(m) for m in instance.machines}) == 1)
    # one entry a block: shards of a block that change places with one another have not moved
    several = (np.diff(instance.block_shards) > 1) & ~instance.settled
    assume(not several.any())
    move = [draw(st.integers(0, 3)) for _ in instance.shard_move]
    instance = replace(instance, shard_move=np.asarray(move, dtype=np.int64))
    loose = [replace(r, capacity=r.capacity * 0 + 10**6) for r in instance.resources]
    order = replace(instance, resources=tuple(loose), objective=Objective.TOTAL)
    plan = brute_force(replace(order, shard_cost=-np.abs(order.shard_cost))).placement
    assume(plan is not None)
    current = tuple(
        Current(t, int(o), tuple(tuple(b) for b in plan.to_lists(t)))
        for t, o in enumerate(plan.options)
        if draw(st.integers(0, 4))
    )
    return replace(instance, current=current), plan


def least(instance: Instance, price: int) -> int | None:
    """The least sum of objective and price, by trying every limit on moved bytes."""
    sums = {0}
    for now in instance.current:
        sizes = {size_of(instance, option) for option in instance.options_of(now.table)} | {0}
        sums = {before + size for before in sums for size in sizes}
    found = []
    for limit in sums:
        limited = replace(instance, max_moved_bytes=limit) if instance.current else instance
        truth = brute_force(limited).objective
        if truth is not None:
            found.append(truth + price * limit)
    return min(found, default=None)


def size_of(instance: Instance, option: int) -> int:
    """Bytes of all shards of an option."""
    size = 0
    for index in instance.blocks_of(option):
        block = instance.block(index)
        size += sum(
            int(instance.shard_move[block.entry(p)]) for p in range(instance.positions(block))
        )
    return size


@given(moving(), st.integers(0, 3))
def test_the_least_of_objective_and_price(case: tuple[Instance, Placement], price: int) -> None:
    """The optimum is the least sum of objective and price; placements convert both ways."""
    instance, _ = case
    found = priced(instance, Fraction(price))
    validate(found.instance)
    truth = brute_force(found.instance)
    assert truth.objective == least(instance, price)
    if truth.placement is None:
        return
    plain = found.without_price(truth.placement)
    verdict = check(instance, plain)
    size = moved_bytes(instance, plain, moved_tables(instance, plain))
    kind = instance.objective.value
    assert verdict.feasible and truth.objective == verdict.objectives[kind] + price * size
    again = found.with_price(plain)
    assert check(found.instance, again).objectives[kind] == truth.objective
    assert found.paid(again) == price * size


@given(instances(max_tables=3, constraints=False, max_combinations=300), st.data())
@settings(max_examples=100, deadline=None)
def test_any_placement_converts(instance: Instance, data: st.DataObject) -> None:
    """On machines of any sizes, a placement without the price uses and costs the same, less what
    it pays; a table that stays keeps its ranks."""
    move = [data.draw(st.integers(1, 3)) for _ in instance.shard_move]
    loose = [replace(r, capacity=r.capacity * 0 + 10**6) for r in instance.resources]
    instance = replace(
        instance, shard_move=np.asarray(move, dtype=np.int64), resources=tuple(loose)
    )
    dearest = replace(instance, shard_cost=-np.abs(instance.shard_cost), objective=Objective.TOTAL)
    plans = [brute_force(dearest).placement, brute_force(instance).placement]
    now = plans[data.draw(st.integers(0, 1))]
    assume(now is not None and instance.num_tables)
    assert now is not None
    current = tuple(
        Current(t, int(o), tuple(tuple(b) for b in now.to_lists(t)))
        for t, o in enumerate(now.options)
    )
    found = priced(replace(instance, current=current), Fraction(data.draw(st.integers(0, 3))))
    validate(found.instance)
    stays = found.with_price(now)
    assert found.paid(stays) == 0
    for placement in (stays, brute_force(found.instance).placement):
        assert placement is not None
        there = check(found.instance, placement)
        plain = found.without_price(placement)
        here = check(found.base, plain)
        kind = instance.objective.value
        assert there.feasible and here.feasible
        assert there.objectives[kind] == here.objectives[kind] + found.paid(placement)
    back = found.without_price(stays)
    assert [back.to_lists(t) for t in range(instance.num_tables)] == [
        now.to_lists(t) for t in range(instance.num_tables)
    ]


def one(objective: Objective) -> Instance:
    """Two tables on rank 0 of two: apart they cost less, and each has 5 bytes to move."""
    now = [Current(t, t, ((0,),)) for t in range(2)]
    two = [at(ANY, 7, move_bytes=5, hbm=5)] * 2
    return built(two, objective, phases=["time"], hbm=10, current=now)


@pytest.mark.parametrize(("price", "objective", "moves"), [(1, 12, 1), (2, 14, 0), (0, 7, 1)])
def test_by_hand(price: int, objective: int, moves: int) -> None:
    """Apart the busiest rank has 7 instead of 14; moving 5 bytes pays up to a price below 7/5."""
    found = priced(one(Objective.BUSIEST_RANK), Fraction(price))
    assert found.instance.phases == ("time", PHASE)
    outcome = solve(found.instance, "auto", Settings(time_limit=10))
    assert outcome.objective == objective and outcome.certified_bound == objective
    assert verify(found.instance, outcome).ok
    assert outcome.placement is not None
    plain = found.without_price(outcome.placement)
    assert price == 2 or len(moved_tables(found.base, plain)) == moves


def test_a_fraction_is_rounded_up() -> None:
    """5 bytes at 1/3: 1.67 becomes 2."""
    found = priced(one(Objective.STEP_TIME), Fraction(1, 3))
    assert sorted(found.price.tolist()) == [0, 0, 2, 2]
    assert brute_force(found.instance).objective == 9


def test_refusals() -> None:
    """A price below zero, a price too large and a second price are refused."""
    instance = one(Objective.STEP_TIME)
    with pytest.raises(InstanceError, match="must be 0 or more"):
        priced(instance, Fraction(-1))
    with pytest.raises(InstanceError, match=r"2\^53"):
        priced(instance, Fraction(2**53))
    with pytest.raises(InstanceError, match="already has a phase"):
        priced(priced(instance, Fraction(1)).instance, Fraction(1))
