"""Columns that say where the shards of an option go, on the free ranks of a neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from formulations.aggregate.linear import LinearModel
from formulations.check import position_entries
from formulations.instance import BlockView, Instance, IntArray, Where
from formulations.placement import machine_ranks


@dataclass(frozen=True, eq=False)
class BlockSeats:
    """Columns of one block.

    Attributes
    ----------
    view : BlockView
    fixed : int64 array or None
        Its ranks, when nothing is left to choose.
    shards : dict of shard entry to list of (rank, column)
        How many shards like the entry go to a rank (``ANY_RANK`` kinds).
    machines : list of (machine, column)
        How often a machine is taken (machine kinds).
    """

    view: BlockView
    fixed: IntArray | None = None
    shards: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    machines: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Seat:
    """``column`` times, shards like these entries sit on these ranks (empty: on no rank)."""

    column: int
    ranks: IntArray
    entries: IntArray


class Seats:
    """Adds the placement columns of options to a model.

    Parameters
    ----------
    instance : Instance
    model : LinearModel
    free : bool array [ranks]
        Ranks that any_rank shards may go to.
    """

    def __init__(self, instance: Instance, model: LinearModel, free: np.ndarray) -> None:
        self._instance, self._model, self._free = instance, model, free
        self._pins = {p.option: p.ranks for p in instance.pins if p.ranks is not None}
        self.terms: list[Seat] = []

    def add(self, option: int, column: int) -> list[BlockSeats] | None:
        """Columns and terms of one option; None when it has no place here."""
        blocks = self._instance.blocks_of(option)
        pinned = self._pins.get(option)
        made = []
        for index, block in enumerate(blocks):
            view = self._instance.block(block)
            seats = self._block(view, column, None if pinned is None else pinned[index])
            if seats is None:
                return None
            made.append(seats)
        return made

    def _block(
        self, view: BlockView, column: int, pinned: tuple[int, ...] | None
    ) -> BlockSeats | None:
        fixed = self._fixed(view)
        if fixed is not None:
            self._term(column, fixed, self._entries(view, fixed))
            return BlockSeats(view, fixed=fixed)
        if view.where == Where.ANY_RANK:
            return self._any_rank(view, column, pinned)
        if view.where == Where.ONE_MACHINE:
            return self._one_machine(view, column, pinned)
        return self._inside(view, column, pinned)

    def _fixed(self, view: BlockView) -> IntArray | None:
        if view.where == Where.EVERY_RANK:
            return np.arange(self._instance.num_ranks)
        if view.where == Where.LIST:
            return np.asarray(view.places, dtype=np.int64)
        if view.where == Where.CLUSTER:
            return np.empty(0, dtype=np.int64)
        return None

    def _entries(self, view: BlockView, ranks: IntArray) -> IntArray:
        if view.where == Where.CLUSTER:
            return np.asarray([view.entry(i) for i in range(view.count)], dtype=np.int64)
        return position_entries(self._instance, view, ranks)

    def _term(self, column: int, ranks: IntArray, entries: IntArray) -> None:
        self.terms.append(Seat(column, ranks, entries))

    def _any_rank(
        self, view: BlockView, column: int, pinned: tuple[int, ...] | None
    ) -> BlockSeats | None:
        allowed = np.flatnonzero(self._free)
        if view.places is not None:
            allowed = allowed[np.isin(allowed, view.places)]
        return self._spread(view, [(column, allowed)], pinned)

    def _spread(
        self, view: BlockView, homes: list[tuple[int, IntArray]], pinned: tuple[int, ...] | None
    ) -> BlockSeats | None:
        """Spread the shards over the ranks of each home, as often as its column says."""
        shards: dict[int, list[tuple[int, int]]] = {}
        at_rank: dict[int, list[int]] = {}
        pieces = _counts(view)
        for home, ranks in homes:
            if not len(ranks) or (view.distinct and len(ranks) < view.count):
                if len(homes) == 1:
                    return None
                self._model.row([home], [1], high=0)
                continue
            for entry, count in pieces:
                first = self._model.columns(len(ranks), upper=1 if view.distinct else count)
                columns = list(range(first, first + len(ranks)))
                self._model.row([*columns, home], [1] * len(columns) + [-count], 0, 0)
                for rank, one in zip(ranks.tolist(), columns, strict=True):
                    self._term(one, np.asarray([rank]), np.asarray([entry]))
                    shards.setdefault(entry, []).append((rank, one))
                    at_rank.setdefault(rank, []).append(one)
        for ones in at_rank.values():
            if view.distinct and len(ones) > 1:
                self._model.row(ones, [1] * len(ones), high=1)
        self._pin(at_rank, homes[0][0] if len(homes) == 1 else None, homes, pinned)
        return BlockSeats(view, shards=shards)

    def _pin(
        self,
        at_rank: dict[int, list[int]],
        column: int | None,
        homes: list[tuple[int, IntArray]],
        pinned: tuple[int, ...] | None,
    ) -> None:
        if pinned is None:
            return
        users = [column] if column is not None else [home for home, _ in homes]
        counts = {r: pinned.count(r) for r in set(pinned)}
        for rank, ones in at_rank.items():
            self._model.row(
                [*ones, *users], [1] * len(ones) + [-counts.get(rank, 0)] * len(users), 0, 0
            )
        for rank in counts:
            if rank not in at_rank:
                self._model.row(users, [1] * len(users), high=0)

    def _one_machine(
        self, view: BlockView, column: int, pinned: tuple[int, ...] | None
    ) -> BlockSeats | None:
        machines = self._machines(view)
        if view.distinct and len(machines) < view.count:
            return None
        upper = 1 if view.distinct else view.count
        first = self._model.columns(len(machines), upper=upper)
        chosen = list(zip(machines, range(first, first + len(machines)), strict=True))
        columns = [c for _, c in chosen]
        self._model.row([*columns, column], [1] * len(columns) + [-view.count], 0, 0)
        for machine, one in chosen:
            ranks = machine_ranks(self._instance, [machine])
            entries = view.entries if not view.shared else np.full(len(ranks), view.entries[0])
            self._term(one, ranks, entries)
            if pinned is not None:
                times = pinned.count(int(ranks[0]))
                self._model.row([one, column], [1, -times], 0, 0)
        return BlockSeats(view, machines=chosen)

    def _inside(
        self, view: BlockView, column: int, pinned: tuple[int, ...] | None
    ) -> BlockSeats | None:
        homes, chosen = [], []
        for machine in self._machines(view):
            ranks = np.asarray(self._instance.machines[machine], dtype=np.int64)
            ranks = ranks[self._free[ranks]]
            if len(ranks):
                one = self._model.columns(1)
                chosen.append((machine, one))
                homes.append((one, ranks))
        if not homes:
            return None
        columns = [c for _, c in chosen]
        self._model.row([*columns, column], [1] * len(columns) + [-1], 0, 0)
        seats = self._spread(view, homes, pinned)
        if seats is None:
            return None
        return BlockSeats(view, shards=seats.shards, machines=chosen)

    def _machines(self, view: BlockView) -> list[int]:
        return list(range(len(self._instance.machines)) if view.places is None else view.places)


def _counts(view: BlockView) -> list[tuple[int, int]]:
    if view.shared:
        return [(int(view.entries[0]), view.count)]
    entries, counts = np.unique(view.entries, return_counts=True)
    return list(zip(entries.tolist(), counts.tolist(), strict=True))


def seated_ranks(instance: Instance, seats: BlockSeats, values: IntArray) -> IntArray:
    """Ranks of a block in position order, from a solution of the model."""
    view = seats.view
    if seats.fixed is not None:
        return seats.fixed
    if view.where == Where.ONE_MACHINE:
        machines = [m for m, column in seats.machines for _ in range(int(values[column]))]
        return machine_ranks(instance, machines)
    pools = {
        entry: [rank for rank, column in cells for _ in range(int(values[column]))]
        for entry, cells in seats.shards.items()
    }
    return np.asarray([pools[view.entry(i)].pop(0) for i in range(view.count)], dtype=np.int64)


def seat_values(instance: Instance, seats: BlockSeats, ranks: IntArray) -> dict[int, int] | None:
    """Values of the columns for a block on given ranks (a hint); None when it has no seat."""
    view, found = seats.view, {}
    if seats.fixed is not None:
        return {}
    if seats.machines:
        firsts = {int(r): m for m, group in enumerate(instance.machines) for r in group}
        taken = [firsts[int(r)] for r in ranks]
        for machine, column in seats.machines:
            count = taken.count(machine)
            size = len(instance.machines[machine]) if view.where == Where.ONE_MACHINE else 1
            found[column] = count // size if view.where == Where.ONE_MACHINE else int(count > 0)
    for position, rank in enumerate(ranks.tolist() if seats.shards else []):
        cells = dict(seats.shards[view.entry(position)])
        if rank not in cells:
            return None
        found[cells[rank]] = found.get(cells[rank], 0) + 1
    return found
