"""The blocks of chosen options, unpacked once; the remaining capacity of every place and the load
of every rank, while shards are placed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Scope
from formulations.result.piles import position_entries

#: (cost of all phases, ((resource, use), …) of the uses that are not 0)
Shard = tuple[int, tuple[tuple[int, int], ...]]


class State:
    """Remaining capacities and rank loads; plain lists, because shards come one at a time.

    Parameters
    ----------
    instance : Instance
    place_of : list [resources] of list [ranks] of int
        Place of a rank in the resource's scope; see :func:`places`.
    load : int64 array [ranks]
        Cost each rank carries already.
    use : int64 array [ranks, resources]
        What each rank uses already.
    off : int64 array [resources]
        What shards on no rank use already (cluster resources only).
    """

    def __init__(
        self,
        instance: Instance,
        place_of: list[list[int]],
        load: IntArray,
        use: IntArray,
        off: IntArray,
    ) -> None:
        self.place_of = place_of
        self.load: list[int] = load.tolist()
        self.left: list[list[int]] = []
        self.overfull = False
        for index, resource in enumerate(instance.resources):
            left = resource.capacity.copy()
            np.subtract.at(left, place_of[index], use[:, index])
            if resource.scope == Scope.CLUSTER:
                left -= off[index]
            self.overfull = self.overfull or bool((left < 0).any())
            self.left.append(left.tolist())

    def fits(self, shard: Shard, rank: int) -> bool:
        """Whether one more shard fits at a rank."""
        return all(self.left[i][self.place_of[i][rank]] >= amount for i, amount in shard[1])

    def put(self, shard: Shard, rank: int) -> None:
        """Place one shard; the caller has checked :meth:`fits`."""
        cost, uses = shard
        self.load[rank] += cost
        for index, amount in uses:
            self.left[index][self.place_of[index][rank]] -= amount

    def take_back(self, shard: Shard, rank: int) -> None:
        """Undo :meth:`put`."""
        cost, uses = shard
        self.load[rank] -= cost
        for index, amount in uses:
            self.left[index][self.place_of[index][rank]] += amount


class RankHeap:
    """Ranks by load; ties by position on their machine, then by rank.

    That order is TorchRec's (``OrderedDeviceHardware``): equal loads spread over machines first.

    Parameters
    ----------
    state : State
    ranks : iterable of int
    position : list [ranks] of int
        Position of each rank on its machine.
    """

    def __init__(self, state: State, ranks: Iterable[int], position: list[int]) -> None:
        self.state = state
        self._heap = [(state.load[r], position[r], r) for r in ranks]
        heapq.heapify(self._heap)

    def place(self, shard: Shard, banned: frozenset[int] | set[int] = frozenset()) -> int | None:
        """Put a shard on the least loaded rank where it fits; None when it fits nowhere."""
        state, heap = self.state, self._heap
        skipped = []
        chosen = None
        while heap:
            _, position, rank = heap[0]
            if rank not in banned and state.fits(shard, rank):
                state.put(shard, rank)
                heapq.heapreplace(heap, (state.load[rank], position, rank))
                chosen = rank
                break
            skipped.append(heapq.heappop(heap))
        for item in skipped:
            heapq.heappush(heap, item)
        return chosen


def places(instance: Instance) -> list[list[int]]:
    """Place of every rank in every resource's scope, list [resources] of list [ranks]."""
    per_scope = {
        Scope.RANK: list(range(instance.num_ranks)),
        Scope.MACHINE: instance.machine_of.tolist(),
        Scope.CLUSTER: [0] * instance.num_ranks,
    }
    return [per_scope[r.scope] for r in instance.resources]


def positions_on_machine(instance: Instance) -> list[int]:
    """Position of every rank on its machine, list [ranks]."""
    position = [0] * instance.num_ranks
    for ranks in instance.machines:
        for index, rank in enumerate(ranks):
            position[rank] = index
    return position


#: Dense vectors of fixed blocks are kept up to this many numbers in all (8 bytes each).
_CACHE = 8_000_000


@dataclass(frozen=True)
class FreeBlock:
    """A block whose place the partitioner chooses.

    ``shards`` has one entry per position or, for ``ONE_MACHINE``, per position on one machine; a
    shared entry is then a list of one.
    """

    whole: bool
    by_machine: bool
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
        self._has_free = np.zeros(instance.num_options, dtype=bool)
        np.logical_or.at(self._has_free, instance.option_of, ~instance.settled)
        entries = np.diff(instance.block_shards)
        first = instance.block_shards[:-1]
        self._even = instance.everywhere & (entries == 1) & (instance.shard_repeat[first] == 1)
        self._simple = np.diff(instance.option_blocks) == 1
        np.logical_and.at(self._simple, instance.option_of, self._even)

    def has_free(self, options: IntArray) -> np.ndarray:
        """Which options have a block whose place is a choice, bool array."""
        result: np.ndarray = self._has_free[options]
        return result

    def free(self, index: int) -> FreeBlock | None:
        """One block if its place is a choice, else None."""
        if index not in self._free:
            if self._instance.settled[index]:
                return None
            self._free[index] = self._unpack(index)
        return self._free[index]

    def _unpack(self, index: int) -> FreeBlock:
        block = self._instance.block(index)
        shards = tuple(self._shard(int(e)) for e in block.entries)
        if block.shared and not block.whole:
            shards = shards * block.count
        return FreeBlock(
            block.whole, block.by_machine, block.count, block.distinct, block.places, shards
        )

    def _shard(self, entry: int) -> Shard:
        use = self._instance.shard_use[entry].tolist()
        return (
            int(self._instance.shard_cost[entry].sum()),
            tuple((i, amount) for i, amount in enumerate(use) if amount),
        )

    def base(self, options: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """What the blocks without a choice of place use and cost.

        Returns
        -------
        load : int64 array [ranks]
        use : int64 array [ranks, resources]
        off : int64 array [resources]
            On no rank (``CLUSTER`` blocks).
        """
        instance = self._instance
        load = np.zeros(instance.num_ranks, dtype=np.int64)
        use = np.zeros((instance.num_ranks, len(instance.resources)), dtype=np.int64)
        off = np.zeros(len(instance.resources), dtype=np.int64)
        simple = options[self._simple[options]]
        entry = instance.block_shards[instance.option_blocks[simple]]
        load += instance.shard_cost[entry].sum()
        use += instance.shard_use[entry].sum(axis=0)
        for option in options[~self._simple[options]].tolist():
            for index in instance.blocks_of(option):
                if instance.unplaced[index]:
                    block = instance.block(index)
                    entries = np.asarray([block.entry(i) for i in range(block.count)])
                    off += instance.shard_use[entries].sum(axis=0)
                elif instance.settled[index]:
                    block_load, block_use = self._vectors(index)
                    load += block_load
                    use += block_use
        return load, use, off

    def _vectors(self, index: int) -> tuple[IntArray, IntArray]:
        if index in self._fixed:
            return self._fixed[index]
        instance = self._instance
        load = np.zeros(instance.num_ranks, dtype=np.int64)
        use = np.zeros((instance.num_ranks, len(instance.resources)), dtype=np.int64)
        ranks = instance.settled_ranks(index)
        assert ranks is not None
        entries = position_entries(instance, instance.block(index), ranks)
        load[ranks] = instance.shard_cost[entries].sum(axis=1)
        use[ranks] = instance.shard_use[entries]
        if (len(self._fixed) + 1) * (load.size + use.size) <= _CACHE:
            self._fixed[index] = load, use
        return load, use
