"""Local search over single shards: move one, or swap two, between the fullest rank and another.

All moves of a step are weighed at once in NumPy, by a convex penalty per rank (and per machine)
in the manner of load balancing by potential functions; options stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective, Scope, Where
from formulations.result.placement import Placement
from formulations.search.state import load_of

FloatArray = NDArray[np.float64]

_POWER = 12
_WALL = 100.0


def shift(
    instance: Instance,
    costs: IntArray,
    placement: Placement,
    target: list[float],
    stop: Callable[[int], bool],
) -> Placement:
    """Improve a placement by moves and swaps of single shards.

    Parameters
    ----------
    instance : Instance
    costs : int64 array [entries, peaks]
    placement : Placement
    target : floats [peaks]
        Cost a rank should not exceed.
    stop : callable
        Asked before every step with the number of steps made.
    """
    shards = _Shards(instance, costs, placement)
    if not len(shards.rank) or instance.num_ranks < 2:
        return placement
    search = _Search(instance, costs, placement, shards, target)
    steps = 0
    while not stop(steps) and search.step():
        steps += 1
    return shards.placement(placement)


class _Shards:
    """Shards that may move alone: those of ``ANY_RANK`` blocks, and inside one machine."""

    def __init__(self, instance: Instance, costs: IntArray, placement: Placement) -> None:
        self.where: list[tuple[int, int, int]] = []
        entries, ranks, allowed = [], [], []
        pinned = {p.table for p in instance.pins if p.ranks is not None}
        everywhere = np.ones(instance.num_ranks, dtype=bool)
        for table, option in enumerate(placement.options.tolist()):
            for index, block in enumerate(instance.blocks_of(option)):
                kind = int(instance.block_where[block])
                if table in pinned or kind not in (
                    Where.ANY_RANK,
                    Where.ANY_RANK_OF_ONE_MACHINE,
                ):
                    continue
                view = instance.block(block)
                if view.distinct and view.count > 1:
                    continue
                here = placement.ranks[table][index]
                mask = everywhere
                if kind == Where.ANY_RANK_OF_ONE_MACHINE and view.count > 1:
                    mask = instance.machine_of == instance.machine_of[here[0]]
                elif view.places is not None:
                    places = instance.machine_of if kind != Where.ANY_RANK else None
                    who = np.arange(instance.num_ranks) if places is None else places
                    mask = np.isin(who, view.places)
                for position, rank in enumerate(here.tolist()):
                    self.where.append((table, index, position))
                    entries.append(view.entry(position))
                    ranks.append(rank)
                    allowed.append(mask)
        self.entry = np.asarray(entries, dtype=np.int64)
        self.rank = np.asarray(ranks, dtype=np.int64)
        self.allowed = np.asarray(allowed, dtype=bool).reshape(-1, instance.num_ranks)

    def placement(self, base: Placement) -> Placement:
        """The base with every shard at its present rank."""
        ranks = [[block.copy() for block in table] for table in base.ranks]
        for (table, block, position), rank in zip(self.where, self.rank.tolist(), strict=True):
            ranks[table][block][position] = rank
        return Placement(base.options.copy(), ranks)


class _Search:
    def __init__(
        self,
        instance: Instance,
        costs: IntArray,
        placement: Placement,
        shards: _Shards,
        target: list[float],
    ) -> None:
        self._shards, self._machine = shards, instance.machine_of
        load = load_of(instance, costs, placement, range(instance.num_tables))
        on_rank = [i for i, r in enumerate(instance.resources) if r.scope == Scope.RANK]
        on_machine = [i for i, r in enumerate(instance.resources) if r.scope == Scope.MACHINE]
        peaks = 0 if instance.objective == Objective.TOTAL else costs.shape[1]
        room = [np.full(instance.num_ranks, max(1.0, t)) for t in target[:peaks]]
        room += [np.maximum(instance.resources[i].capacity, 1).astype(float) for i in on_rank]
        self._room = np.stack(room, axis=1) if room else np.ones((instance.num_ranks, 0))
        features = [costs[:, p] for p in range(peaks)]
        features += [instance.shard_use[:, i] for i in on_rank]
        self._size = _columns(features, shards.entry)
        self._load = np.concatenate([load.cost[:, :peaks], load.use[:, on_rank]], axis=1) * 1.0
        use = load.use[:, on_machine]
        machines = len(instance.machines)
        self._machine_load = np.zeros((machines, len(on_machine)))
        np.add.at(self._machine_load, self._machine, use)
        caps = [np.maximum(instance.resources[i].capacity, 1).astype(float) for i in on_machine]
        self._machine_room = np.stack(caps, axis=1) if caps else np.ones((machines, 0))
        self._machine_size = _columns([instance.shard_use[:, i] for i in on_machine], shards.entry)
        self._tired: set[int] = set()

    def step(self) -> bool:
        """Make the best move or swap of the fullest rank that has one; False: none has."""
        penalty = _penalty(self._load, self._room)
        over = _penalty(self._machine_load, self._machine_room)
        order = np.argsort(-(penalty + over[self._machine]), kind="stable")
        for rank in order[: max(4, len(order) // 4)].tolist():
            if rank in self._tired:
                continue
            if self._relieve(rank, penalty):
                return True
            self._tired.add(rank)
        return False

    def _relieve(self, rank: int, penalty: FloatArray) -> bool:
        mine = np.flatnonzero(self._shards.rank == rank)
        if not len(mine):
            return False
        move = self._best_move(rank, mine, penalty)
        swap = self._best_swap(rank, mine, penalty)
        gain, shard, other, to = min(move, swap, key=lambda m: m[0])
        if gain > -1e-9:
            return False
        self._put(shard, to)
        if other >= 0:
            self._put(other, rank)
        self._tired -= {rank, to}
        return True

    def _best_move(
        self, rank: int, mine: IntArray, penalty: FloatArray
    ) -> tuple[float, int, int, int]:
        size = self._size[mine]
        off = _penalty(self._load[rank] - size, self._room[rank])
        on = _penalty(self._load[None] + size[:, None], self._room[None])
        gain = (off - penalty[rank])[:, None] + on - penalty[None]
        gain += self._machine_gain(rank, self._machine_size[mine][:, None], self._machine[None])
        gain[~self._shards.allowed[mine]] = np.inf
        gain[:, rank] = np.inf
        best = int(np.argmin(gain))
        row, to = divmod(best, gain.shape[1])
        return float(gain.flat[best]), int(mine[row]), -1, to

    def _best_swap(
        self, rank: int, mine: IntArray, penalty: FloatArray
    ) -> tuple[float, int, int, int]:
        shards = self._shards
        others = np.flatnonzero((shards.rank != rank) & shards.allowed[:, rank])
        if not len(others):
            return np.inf, -1, -1, -1
        there = shards.rank[others]
        change = self._size[others][None] - self._size[mine][:, None]
        gain = _penalty(self._load[rank] + change, self._room[rank]) - penalty[rank]
        gain += _penalty(self._load[there][None] - change, self._room[there][None])
        gain -= penalty[there][None]
        machine = self._machine_size[mine][:, None] - self._machine_size[others][None]
        gain += self._machine_gain(rank, machine, self._machine[there][None])
        gain[~shards.allowed[mine][:, there]] = np.inf
        best = int(np.argmin(gain))
        row, column = divmod(best, gain.shape[1])
        return float(gain.flat[best]), int(mine[row]), int(others[column]), int(there[column])

    def _machine_gain(self, rank: int, size: FloatArray, to: IntArray) -> FloatArray | float:
        """Change of the machines' penalty when ``size`` leaves the rank's machine for another."""
        if not self._machine_size.shape[1]:
            return 0.0
        here = int(self._machine[rank])
        before = _penalty(self._machine_load, self._machine_room)
        off = _penalty(self._machine_load[here] - size, self._machine_room[here]) - before[here]
        on = _penalty(self._machine_load[to] + size, self._machine_room[to]) - before[to]
        result: FloatArray = np.where(to == here, 0.0, off + on)
        return result

    def _put(self, shard: int, rank: int) -> None:
        old = int(self._shards.rank[shard])
        self._load[old] -= self._size[shard]
        self._load[rank] += self._size[shard]
        self._machine_load[self._machine[old]] -= self._machine_size[shard]
        self._machine_load[self._machine[rank]] += self._machine_size[shard]
        self._shards.rank[shard] = rank


def _columns(features: list[IntArray], entries: IntArray) -> FloatArray:
    if not features:
        return np.zeros((len(entries), 0))
    return np.stack(features, axis=1)[entries].astype(np.float64)


def _penalty(load: FloatArray, room: FloatArray) -> FloatArray:
    """Σ over features of (load/room)^p, with a wall beyond 1."""
    share = load / room
    square = share * share
    high = square * square * square
    result: FloatArray = (high * high + _WALL * np.maximum(share - 1.0, 0.0)).sum(axis=-1)
    return result


__all__ = ["shift"]
