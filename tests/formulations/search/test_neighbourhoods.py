"""Which part of a placement is opened."""

from __future__ import annotations

import random

import numpy as np

from formulations.instance import Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.presolve import usable
from formulations.result.check import compute_loads
from formulations.result.placement import Placement
from formulations.search.context import Sizes
from formulations.search.neighbourhoods import Chooser


def test_ranks_of_a_machine_open_what_lies_on_all_of_it() -> None:
    """Two of four ranks open: the table-row-wise table is open as well, if not its assignment."""
    builder = InstanceBuilder([[0, 1, 2, 3], [4]], ["p"], [], "busiest_rank")
    builder.add_table("wide")
    builder.add_option("o", [Block(Where.ONE_MACHINE, [Shard({}, [3])], 1)])
    for table in "abcd":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])])])
    instance = builder.build()
    ranks = [[np.arange(4)], *([np.asarray([r])] for r in range(4))]
    placement = Placement(np.arange(5), ranks)
    load = compute_loads(instance, placement)
    chooser = Chooser(instance, usable(instance), random.Random(0), Sizes(ranks=2.0))
    drawn = [chooser.draw(placement, load) for _ in range(50)]
    parts = [(tables, free) for kind, tables, free in drawn if kind == "ranks"]
    assert parts
    assert all(0 in tables and free.sum() == 2 for tables, free in parts)
