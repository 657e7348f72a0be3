"""Cost and use of some tables of a placement, on every rank."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from formulations.instance import BlockView, Instance, IntArray
from formulations.result.check import position_entries
from formulations.result.placement import Placement


class Piles(NamedTuple):
    """Cost and use per rank, to which blocks can be added and removed; int64 arrays."""

    cost: IntArray
    """Cost of each rank; array [ranks, phases]."""
    use: IntArray
    """Use of each rank; array [ranks, resources]."""
    off_cost: IntArray
    off_use: IntArray
    """Cost and use of blocks on no rank; arrays [phases] and [resources]."""

    def add(self, instance: Instance, block: BlockView, ranks: IntArray, sign: int = 1) -> None:
        """Add a placed block, or remove it with sign −1."""
        if block.unplaced:
            off = [block.entry(i) for i in range(block.count)]
            self.off_cost[:] += sign * instance.shard_cost[off].sum(axis=0)
            self.off_use[:] += sign * instance.shard_use[off].sum(axis=0)
            return
        entries = position_entries(instance, block, ranks)
        np.add.at(self.cost, ranks, sign * instance.shard_cost[entries])
        np.add.at(self.use, ranks, sign * instance.shard_use[entries])

    def add_table(
        self, instance: Instance, placement: Placement, table: int, sign: int = 1
    ) -> None:
        """Add all blocks of a placed table, or remove them with sign −1."""
        blocks = instance.blocks_of(int(placement.options[table]))
        for index, ranks in zip(blocks, placement.ranks[table], strict=True):
            self.add(instance, instance.block(index), ranks, sign)


def piles(instance: Instance, placement: Placement, tables: Iterable[int]) -> Piles:
    """The cost and use of some tables of a well-formed placement."""
    shapes = (len(instance.phases), len(instance.resources))
    rows = [np.zeros((instance.num_ranks, n), dtype=np.int64) for n in shapes]
    found = Piles(*rows, *(np.zeros(n, dtype=np.int64) for n in shapes))
    for table in tables:
        found.add_table(instance, placement, table)
    return found
