"""Longest-first vector packing: place the shards of chosen options, largest first.

Every shard goes where it leaves the least of a norm over cost (against a target) and every
resource (against its capacity): the norm-based greedy of Panigrahy et al., "Heuristics for vector
bin packing" (2011), with a high power so that the fullest dimension decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.instance import BlockView, Instance, IntArray, Objective, Scope, Where
from formulations.instance.seating import pinned_ranks
from formulations.result.check import position_entries
from formulations.result.placement import Placement, fixed_ranks, machine_ranks

FloatArray = NDArray[np.float64]

_POWER = 6.0


@dataclass(frozen=True, eq=False)
class _Item:
    """Shards placed in one step: one shard, or one machine's worth of a block."""

    size: float
    table: int
    block: int
    view: BlockView
    position: int
    ranks: IntArray | None


class Packer:
    """Packs option choices of one instance.

    Parameters
    ----------
    instance : Instance
    costs : int64 array [entries, peaks]
    """

    def __init__(self, instance: Instance, costs: IntArray) -> None:
        self._instance = instance
        self._features = np.concatenate([costs, instance.shard_use], axis=1).astype(np.float64)
        self._peaks = 0 if instance.objective == Objective.TOTAL else costs.shape[1]
        self._first_use = costs.shape[1]
        self._pins = pinned_ranks(instance)

    def pack(
        self,
        options: Sequence[int] | IntArray,
        target: Sequence[float],
        machine_of: dict[int, list[int]] | None = None,
        noise: np.random.Generator | None = None,
    ) -> Placement:
        """Place every table at its option; capacities may end up exceeded.

        Parameters
        ----------
        options : one global option index per table
        target : floats [peaks]
            Cost a rank should not exceed, per peak.
        machine_of : dict of block to machines, optional
            Machines chosen beforehand for blocks of the machine kinds and single shards.
        noise : Generator, optional
            Perturbs the order, for restarts.
        """
        room = self._room(target)
        load = np.zeros((self._instance.num_ranks, self._features.shape[1]))
        ranks: list[list[IntArray]] = []
        items: list[_Item] = []
        for table, option in enumerate(int(o) for o in options):
            ranks.append([])
            pinned = self._pins.get(option)
            for index, block in enumerate(self._instance.blocks_of(option)):
                fixed = fixed_ranks(self._instance, block)
                if pinned is not None and fixed is None:
                    fixed = np.asarray(pinned[index], dtype=np.int64)
                if fixed is not None:
                    self._put(load, block, fixed)
                    ranks[-1].append(fixed)
                    continue
                ranks[-1].append(np.empty(0, dtype=np.int64))
                items += self._items(table, index, block, room)
        sizes = np.asarray([item.size for item in items])
        if noise is not None and len(sizes):
            sizes = sizes * noise.uniform(0.8, 1.25, len(sizes))
        for position in np.argsort(-sizes, kind="stable"):
            self._place(items[int(position)], load, room, ranks, machine_of or {})
        for table, option in enumerate(int(o) for o in options):
            self._restore_order(table, option, ranks)
        return Placement(np.asarray(options, dtype=np.int64), ranks)

    def _room(self, target: Sequence[float]) -> FloatArray:
        """Capacity per rank and feature; a machine's or the cluster's is shared out evenly."""
        room = np.full((self._instance.num_ranks, self._features.shape[1]), np.inf)
        for peak in range(self._peaks):
            room[:, peak] = max(1.0, float(target[peak]))
        for index, resource in enumerate(self._instance.resources):
            column = self._first_use + index
            capacity = resource.capacity.astype(np.float64)
            if resource.scope == Scope.RANK:
                room[:, column] = capacity
            elif resource.scope == Scope.MACHINE:
                sizes = np.asarray([len(m) for m in self._instance.machines])
                room[:, column] = (capacity / sizes)[self._instance.machine_of]
            else:
                room[:, column] = capacity[0] / self._instance.num_ranks
        return np.maximum(room, 1.0)

    def _put(self, load: FloatArray, block: int, ranks: IntArray) -> None:
        if len(ranks):
            view = self._instance.block(block)
            entries = position_entries(self._instance, view, ranks)
            np.add.at(load, ranks, self._features[entries])

    def _items(self, table: int, index: int, block: int, room: FloatArray) -> list[_Item]:
        view = self._instance.block(block)
        scale = np.median(room, axis=0)
        relative = (self._features[view.entries] / scale).max(axis=1)
        if view.where == Where.ONE_MACHINE:
            size = float(relative.max())
            return [_Item(size, table, index, view, i, None) for i in range(view.count)]
        if view.shared:
            relative = np.repeat(relative, view.count)
        return [_Item(float(size), table, index, view, i, None) for i, size in enumerate(relative)]

    def _place(
        self,
        item: _Item,
        load: FloatArray,
        room: FloatArray,
        ranks: list[list[IntArray]],
        machine_of: dict[int, list[int]],
    ) -> None:
        taken = ranks[item.table][item.block]
        if item.view.where == Where.ONE_MACHINE:
            chosen = self._best_machine(item, load, room, taken, machine_of)
            entries = item.view.entries
            if item.view.shared:
                entries = np.full(len(chosen), entries[0])
        else:
            allowed = self._allowed(item, taken, machine_of)
            entry = item.view.entry(item.position)
            score = _scores(load[allowed], self._features[entry], room[allowed])
            chosen = allowed[[int(np.argmin(score))]]
            entries = np.asarray([entry])
        load[chosen] += self._features[entries]
        ranks[item.table][item.block] = np.append(taken, chosen)
        if item.view.where != Where.ONE_MACHINE:
            self._order.setdefault((item.table, item.block), []).append(item.position)

    @property
    def _order(self) -> dict[tuple[int, int], list[int]]:
        if not hasattr(self, "_positions"):
            self._positions: dict[tuple[int, int], list[int]] = {}
        return self._positions

    def _restore_order(self, table: int, option: int, ranks: list[list[IntArray]]) -> None:
        """Shards were placed largest first; bring their ranks back into position order."""
        for index, _ in enumerate(self._instance.blocks_of(option)):
            order = self._order.pop((table, index), None)
            if order is not None:
                ranks[table][index] = ranks[table][index][np.argsort(order, kind="stable")]

    def _allowed(self, item: _Item, taken: IntArray, machine_of: dict[int, list[int]]) -> IntArray:
        instance, view = self._instance, item.view
        if view.where == Where.ANY_RANK:
            places = np.arange(instance.num_ranks)
            if view.places is not None:
                places = np.asarray(view.places, dtype=np.int64)
            machines = machine_of.get(view.index)
            if machines:
                inside = places[np.isin(instance.machine_of[places], machines)]
                places = inside if len(inside) else places
        elif len(taken):
            places = np.asarray(instance.machines[int(instance.machine_of[taken[0]])])
        else:
            chosen = machine_of.get(view.index) or view.places or range(len(instance.machines))
            need = view.count if view.distinct else 1
            fit = [m for m in chosen if len(instance.machines[m]) >= need]
            places = machine_ranks(instance, fit or list(chosen))
        if view.distinct and len(taken):
            others = places[~np.isin(places, taken)]
            places = others if len(others) else places
        return places

    def _best_machine(
        self,
        item: _Item,
        load: FloatArray,
        room: FloatArray,
        taken: IntArray,
        machine_of: dict[int, list[int]],
    ) -> IntArray:
        instance, view = self._instance, item.view
        machines = list(machine_of.get(view.index) or view.places or range(len(instance.machines)))
        if view.distinct and len(taken):
            used = set(instance.machine_of[taken].tolist())
            others = [m for m in machines if m not in used]
            machines = others or machines  # too few machines: the check will say so
        best, best_score = np.empty(0, dtype=np.int64), np.inf
        for machine in machines:
            ranks = np.asarray(instance.machines[machine], dtype=np.int64)
            entries = view.entries if not view.shared else np.full(len(ranks), view.entries[0])
            score = float(_scores(load[ranks], self._features[entries], room[ranks]).sum())
            if score < best_score:
                best, best_score = ranks, score
        return best


def _scores(load: FloatArray, extra: FloatArray, room: FloatArray) -> FloatArray:
    """Growth of Σ (load/room)^p over features, with a wall where a capacity breaks."""
    before, after = load / room, (load + extra) / room
    wall = np.where((after > 1.0) & (extra > 0), 100.0 * (after - 1.0) + 10.0, 0.0)
    growth = after**_POWER - before**_POWER + wall
    result: FloatArray = growth.sum(axis=1)
    return result
