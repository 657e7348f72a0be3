"""Options, machines and ranks of tables, read from a solution."""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.model.build import build
from formulations.model.partition import by_machine, by_rank
from formulations.model.placements import chosen_machines, chosen_options, encode
from formulations.result.placement import Placement
from tests.formulations.model.solved import pooled


def four_tables() -> Instance:
    """On two machines of two ranks: one shard, two shards, a whole machine, every rank."""
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [], "busiest_rank")
    for name, block in (
        ("one", Block(Where.ANY_RANK, [Shard({}, [4])])),
        ("two", Block(Where.ANY_RANK, [Shard({}, [3])], 2)),
        ("whole", Block(Where.ONE_MACHINE, [Shard({}, [2])])),
        ("every", Block(Where.EVERY_RANK, [Shard({}, [1])])),
    ):
        builder.add_table(name)
        builder.add_option("o", [block])
    return builder.build()


PLAN = Placement(
    np.arange(4),
    [[np.asarray(ranks)] for ranks in ([3], [0, 2], [2, 3], [0, 1, 2, 3])],
)


def test_machines_of_tables() -> None:
    """Machine 1 for the single shard and the whole machine; −1 where there are several or all."""
    instance = four_tables()
    for partition in (by_rank(instance), by_machine(instance)):
        model = build(instance, partition)
        values = encode(model, PLAN)
        assert values is not None
        assert chosen_machines(model, values).tolist() == [1, -1, 1, -1]


def test_pooled_machines_are_not_told_apart() -> None:
    """With all ranks in one cell, shards that choose a rank or lie on all have no machine."""
    instance = four_tables()
    model = build(instance, pooled(instance))
    values = encode(model, PLAN)
    assert values is not None
    assert chosen_machines(model, values)[[0, 1, 3]].tolist() == [-1, -1, -1]


def test_options_of_tables() -> None:
    """Every table's option is read; if a table has none, the result is None."""
    instance = four_tables()
    model = build(instance, by_rank(instance))
    values = encode(model, PLAN)
    assert values is not None
    found = chosen_options(model, values)
    assert found is not None and found.tolist() == [0, 1, 2, 3]
    values[model.columns.x[0]] = 0
    assert chosen_options(model, values) is None
