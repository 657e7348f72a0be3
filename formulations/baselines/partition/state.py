"""What is left at every place, and the load of every rank, while shards are placed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np

from formulations.instance import Instance, IntArray, Scope

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
        """Place one shard; the caller has asked :meth:`fits`."""
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
