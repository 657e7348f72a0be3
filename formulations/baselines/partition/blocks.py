"""The blocks of chosen options, unpacked once for the partitioner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.baselines.partition.state import Shard
from formulations.instance import Instance, IntArray, Where
from formulations.result.check import position_entries
from formulations.result.placement import fixed_ranks

_FIXED = (Where.EVERY_RANK, Where.LIST, Where.CLUSTER)
#: Dense vectors of fixed blocks are kept up to this many numbers in all (8 bytes each).
_CACHE = 8_000_000


@dataclass(frozen=True)
class FreeBlock:
    """A block whose place the partitioner chooses.

    ``shards`` has one entry a position; one a *local* position for ``ONE_MACHINE``, where a
    shared entry is a list of one.
    """

    where: Where
    count: int
    distinct: bool
    places: tuple[int, ...] | None
    shards: tuple[Shard, ...]


class Blocks:
    """Cached views of an instance's blocks."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._free: dict[int, FreeBlock] = {}
        self._fixed: dict[int, tuple[IntArray, IntArray]] = {}
        fixed = np.isin(instance.block_where, _FIXED)
        self._has_free = np.zeros(instance.num_options, dtype=bool)
        np.logical_or.at(self._has_free, instance.option_of, ~fixed)
        entries = np.diff(instance.block_shards)
        first = instance.block_shards[:-1]
        self._even = (
            (instance.block_where == Where.EVERY_RANK)
            & (entries == 1)
            & (instance.shard_repeat[first] == 1)
        )
        self._simple = np.diff(instance.option_blocks) == 1
        np.logical_and.at(self._simple, instance.option_of, self._even)

    def has_free(self, options: IntArray) -> np.ndarray:
        """Which options have a block whose place is a choice, bool array."""
        result: np.ndarray = self._has_free[options]
        return result

    def free(self, index: int) -> FreeBlock | None:
        """One block if its place is a choice, else None."""
        if index not in self._free:
            if Where(int(self._instance.block_where[index])) in _FIXED:
                return None
            self._free[index] = self._unpack(index)
        return self._free[index]

    def _unpack(self, index: int) -> FreeBlock:
        block = self._instance.block(index)
        shards = tuple(self._shard(int(e)) for e in block.entries)
        if block.shared and block.where != Where.ONE_MACHINE:
            shards = shards * block.count
        return FreeBlock(block.where, block.count, block.distinct, block.places, shards)

    def _shard(self, entry: int) -> Shard:
        use = self._instance.shard_use[entry].tolist()
        return (
            int(self._instance.shard_cost[entry].sum()),
            tuple((i, amount) for i, amount in enumerate(use) if amount),
        )

    def base(self, options: IntArray) -> tuple[IntArray, IntArray, IntArray, int]:
        """What the blocks without a choice of place use and cost.

        Returns
        -------
        load : int64 array [ranks]
        use : int64 array [ranks, resources]
        off : int64 array [resources]
            On no rank (``CLUSTER`` blocks).
        off_cost : int
            Cost of those.
        """
        instance = self._instance
        load = np.zeros(instance.num_ranks, dtype=np.int64)
        use = np.zeros((instance.num_ranks, len(instance.resources)), dtype=np.int64)
        off, off_cost = np.zeros(len(instance.resources), dtype=np.int64), 0
        simple = options[self._simple[options]]
        entry = instance.block_shards[instance.option_blocks[simple]]
        load += instance.shard_cost[entry].sum()
        use += instance.shard_use[entry].sum(axis=0)
        for option in options[~self._simple[options]].tolist():
            for index in instance.blocks_of(option):
                where = Where(int(instance.block_where[index]))
                if where == Where.CLUSTER:
                    block = instance.block(index)
                    entries = np.asarray([block.entry(i) for i in range(block.count)])
                    off += instance.shard_use[entries].sum(axis=0)
                    off_cost += int(instance.shard_cost[entries].sum())
                elif where in _FIXED:
                    block_load, block_use = self._vectors(index)
                    load += block_load
                    use += block_use
        return load, use, off, off_cost

    def _vectors(self, index: int) -> tuple[IntArray, IntArray]:
        if index in self._fixed:
            return self._fixed[index]
        instance = self._instance
        load = np.zeros(instance.num_ranks, dtype=np.int64)
        use = np.zeros((instance.num_ranks, len(instance.resources)), dtype=np.int64)
        ranks = fixed_ranks(instance, index)
        assert ranks is not None
        entries = position_entries(instance, instance.block(index), ranks)
        load[ranks] = instance.shard_cost[entries].sum(axis=1)
        use[ranks] = instance.shard_use[entries]
        if (len(self._fixed) + 1) * (load.size + use.size) <= _CACHE:
            self._fixed[index] = load, use
        return load, use
