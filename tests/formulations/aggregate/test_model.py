"""Aggregate models are relaxations: their optimum never exceeds the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.aggregate.cells import by_class, by_machine, by_rank
from formulations.aggregate.cpsat import Limits, solve_cpsat
from formulations.aggregate.highs import solve_highs
from formulations.aggregate.model import AggregateSettings, build
from formulations.build import Block, InstanceBuilder, Shard
from formulations.instance import Instance, Where
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances(), st.sampled_from([by_class, by_machine, by_rank]), st.booleans())
def test_every_pooling_is_a_relaxation(instance: Instance, pooling: object, largest: bool) -> None:
    """LP and integer program, pooled by class, machine or rank, stay at or below brute force."""
    truth = brute_force(instance).objective
    made = AggregateSettings(cells=pooling(instance), largest=largest)  # type: ignore[operator]
    model = build(instance, made).model
    whole = solve_cpsat(model, Limits(seconds=10))
    if truth is None:
        return
    assert whole.status == "optimal"
    value = whole.objective if whole.objective is not None else 0
    assert value <= truth
    relaxed = solve_highs(model, whole=False)
    assert relaxed.objective is not None
    assert relaxed.objective <= value + 1e-6 * max(1, abs(value))


@LOOSE
@given(instances())
def test_an_upper_limit_keeps_plans_that_meet_it(instance: Instance) -> None:
    """With ``upper`` at the optimum the model stays feasible and its optimum below."""
    truth = brute_force(instance).objective
    if truth is None or (instance.objective.value != "total" and truth < 0):
        return
    model = build(instance, AggregateSettings(upper=truth)).model
    result = solve_cpsat(model, Limits(seconds=10))
    assert result.status == "optimal"
    assert (result.objective or 0) <= truth


def two_machines() -> Instance:
    """Three tables of 6 and cost 4 on two machines of one rank with 12 each."""
    builder = InstanceBuilder([[0], [1]], ["p"], [("hbm", "rank", 12)], "busiest_rank")
    for table in "abc":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [4])])])
    return builder.build()


def test_pooling_by_hand() -> None:
    """Costs 4 + 4 + 4 over two ranks: 6 by the LP, 8 when ranks are told apart."""
    instance = two_machines()
    lp = solve_highs(build(instance, AggregateSettings(largest=False)).model, whole=False)
    assert lp.objective is not None
    assert abs(lp.objective - 6) < 1e-6
    whole = solve_cpsat(build(instance, AggregateSettings(cells=by_rank(instance))).model, Limits())
    assert whole.objective == 8


def test_largest_shard_row_by_hand() -> None:
    """A shard of 9 beside a base of 2 on each of two ranks: 11, where pooling alone says 7."""
    builder = InstanceBuilder([[0, 1]], ["p"], [], "busiest_rank")
    builder.add_table("base")
    builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({}, [2])])])
    builder.add_table("big")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [9])])])
    instance = builder.build()
    settings_ = AggregateSettings()
    assert solve_cpsat(build(instance, settings_).model, Limits()).objective == 11
    pooled = solve_cpsat(build(instance, replace(settings_, largest=False)).model, Limits())
    assert pooled.objective == 7


def test_what_lies_on_all_of_a_machine_is_part_of_the_base() -> None:
    """A shard of 5 beside a table-row-wise 3 on either machine: 8, where ranks pooled say 6."""
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 1)], "busiest_rank")
    for table in "ab":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ONE_MACHINE, [Shard({"hbm": 1}, [3])], 1)])
    builder.add_table("big")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])])])
    instance = builder.build()
    machines = AggregateSettings(cells=by_machine(instance))
    assert solve_cpsat(build(instance, machines).model, Limits()).objective == 8
    pooled = solve_cpsat(build(instance, replace(machines, largest=False)).model, Limits())
    assert pooled.objective == 6


def test_slack_leaves_room() -> None:
    """With slack 0.5 only half of each capacity may be used."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    for table in "ab":
        builder.add_table(table)
        builder.add_option("fast", [Block(Where.ANY_RANK, [Shard({"hbm": 10}, [1])])])
        builder.add_option("slow", [Block(Where.ANY_RANK, [Shard({"hbm": 0}, [5])])])
    model = build(builder.build(), AggregateSettings(slack=0.5, largest=False)).model
    result = solve_cpsat(model, Limits())
    assert result.objective == 3


def test_cells_tell_apart_what_differs() -> None:
    """Equal ranks share a cell; another capacity, list or pin makes a cell of its own."""
    instance = two_machines()
    assert (by_class(instance).count, by_rank(instance).count) == (1, 2)
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 5)], "total")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [1])])])
    assert (by_class(builder.build()).count, by_machine(builder.build()).count) == (1, 2)
    builder.add_option("l", [Block([1], [Shard({}, [1])])])
    cells = by_class(builder.build())
    assert sorted(cells.cell_size.tolist()) == [1, 1, 2]
    assert np.array_equal(np.sort(cells.group_size), [1, 1])
