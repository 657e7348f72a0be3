"""Partitions: what distinguishes ranks, and which ranks may be swapped."""

from __future__ import annotations

import numpy as np
import pytest

from formulations.instance import Current, Pin, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.lowering import lower
from formulations.model import partition
from formulations.model.partition import by_class, by_machine, by_rank
from formulations.model.symmetry import equal_ranks
from tests.formulations.model.solved import pooled
from tests.formulations.model.test_build import two_machines


def test_cells_tell_apart_what_differs() -> None:
    """Equal ranks share a cell; another capacity, list or pin makes a cell of its own."""
    instance = two_machines()
    partitions = (pooled(instance), by_class(instance), by_rank(instance))
    assert [p.count for p in partitions] == [1, 1, 2]
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 5)], "total")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [1])])])
    plain = builder.build()
    assert [p.count for p in (by_class(plain), by_machine(plain))] == [1, 2]
    builder.add_option("l", [Block([1], [Shard({}, [1])])])
    cells = by_class(builder.build())
    assert sorted(cells.cell_size.tolist()) == [1, 1, 2]
    assert np.bincount(cells.group_of).tolist() == [1, 1]


def test_few_lists_among_many_options_tell_nothing_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where cells and options are too many, one list among many options distinguishes no ranks."""
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 5)], "total")
    builder.add_table("t")
    for index in range(30):
        builder.add_option(f"o{index}", [Block(Where.ANY_RANK, [Shard({}, [1])])])
    builder.add_option("l", [Block([1], [Shard({}, [1])])])
    instance = builder.build()
    assert by_class(instance).count == 3
    monkeypatch.setattr(partition, "MOST_LISTED", 10)
    assert by_class(instance).count == 1
    monkeypatch.setattr(partition, "FEW_LISTS", 0.01)
    assert by_class(instance).count == 3


def test_ranks_that_pins_name_in_other_blocks_are_not_equal() -> None:
    """A pin puts one block on rank 0 and a dearer one on rank 1: they may not be swapped."""
    builder = InstanceBuilder([[0, 1, 2]], ["p"], [], "busiest_rank")
    builder.add_table("t")
    blocks = [Block(Where.ANY_RANK, [Shard({}, [c])]) for c in (1, 9)]
    builder.add_option("o", blocks)
    builder.add_table("u")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [4])])])
    plain = builder.build()
    assert equal_ranks(lower(plain, plain.allowed)) == [[0, 1, 2]]
    pinned = builder.build(pins=[Pin(0, 0, ((0,), (1,)))])
    assert equal_ranks(lower(pinned, pinned.allowed)) == []
    assert by_class(pinned).count == 3


def test_the_current_plan_tells_ranks_apart_where_moves_are_limited() -> None:
    """Rank 1 holds the table now: it is like no other once staying matters."""
    builder = InstanceBuilder([[0, 1, 2]], ["p"], [], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [1])])])
    current = [Current(0, 0, ((1,),))]
    free = builder.build(current=current)
    limited = builder.build(current=current, max_moved_tables=0)
    assert equal_ranks(lower(free, free.allowed)) == [[0, 1, 2]]
    assert equal_ranks(lower(limited, limited.allowed)) == [[0, 2]]


def test_uneven_shards_tell_ranks_apart() -> None:
    """The last rank's smaller shard makes it unlike the others."""
    builder = InstanceBuilder([[0, 1, 2]], ["p"], [], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({}, [5], repeat=2), Shard({}, [1])])])
    instance = builder.build()
    assert equal_ranks(lower(instance, instance.allowed)) == [[0, 1]]
