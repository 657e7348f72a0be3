"""Cost and use of some tables of a placement, on every rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from formulations.instance import BlockView, Instance, IntArray
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


def piles(instance: Instance, placement: Placement, tables: Iterable[int] | None = None) -> Piles:
    """The cost and use of some tables of a well-formed placement, or of all."""
    entries, ranks, off = [], [], list[int]()
    base_cost = np.zeros(len(instance.phases), dtype=np.int64)
    base_use = np.zeros(len(instance.resources), dtype=np.int64)
    for block, placed in _chosen_blocks(instance, placement, tables):
        if block.everywhere and block.shared:
            base_cost += instance.shard_cost[block.entries[0]]
            base_use += instance.shard_use[block.entries[0]]
        elif block.unplaced:
            off.extend(block.entry(i) for i in range(block.count))
        else:
            entries.append(position_entries(instance, block, placed))
            ranks.append(placed)
    entry = np.concatenate(entries) if entries else np.empty(0, dtype=np.int64)
    rank = np.concatenate(ranks) if ranks else np.empty(0, dtype=np.int64)
    cost = np.tile(base_cost, (instance.num_ranks, 1))
    np.add.at(cost, rank, instance.shard_cost[entry])
    use = np.tile(base_use, (instance.num_ranks, 1))
    np.add.at(use, rank, instance.shard_use[entry])
    alone = np.asarray(off, dtype=np.int64)
    off_cost, off_use = instance.shard_cost[alone], instance.shard_use[alone]
    return Piles(cost, use, off_cost.sum(axis=0), off_use.sum(axis=0))


def position_entries(instance: Instance, block: BlockView, ranks: IntArray) -> IntArray:
    """Shard entry of every position of a placed block, int64 array [positions]."""
    if block.shared:
        return np.full(len(ranks), block.entries[0])
    if block.whole:
        return np.tile(block.entries, block.count)
    return block.entries


def _chosen_blocks(
    instance: Instance, placement: Placement, tables: Iterable[int] | None
) -> Iterator[tuple[BlockView, IntArray]]:
    for table in range(instance.num_tables) if tables is None else tables:
        for index, block in enumerate(instance.blocks_of(int(placement.options[table]))):
            yield instance.block(block), placement.ranks[table][index]
