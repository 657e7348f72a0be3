"""Where the shards of each option may land, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.cells import Cells
from formulations.aggregate.linear import LinearModel
from formulations.bounds.own import shard_counts
from formulations.instance import BlockView, Instance, IntArray, Where


@dataclass(frozen=True, eq=False)
class Footprint:
    """Column ``column`` puts ``count`` shards like ``entry`` into ``cell`` (-1: on no rank).

    Attributes
    ----------
    column, cell, entry, count : int64 arrays [terms]
    seats : list of (option, block, entry, cell, column)
        Columns that are 1 only if a shard like ``entry`` sits in the cell: what the largest-shard
        rows need.
    covers : list of (option, block, cell, column)
        Columns that put a shard of the block on every rank of the cell, as often as they say.
    """

    column: IntArray
    cell: IntArray
    entry: IntArray
    count: IntArray
    seats: list[tuple[int, int, int, int, int]]
    covers: list[tuple[int, int, int, int]]


class FootprintBuilder:
    """Adds placement columns to a model and gathers the footprint of every kept option.

    Parameters
    ----------
    instance : Instance
    cells : Cells
    model : LinearModel
    column_of : dict of option to column
        The kept options.
    """

    def __init__(
        self, instance: Instance, cells: Cells, model: LinearModel, column_of: dict[int, int]
    ) -> None:
        self._instance, self._cells, self._model = instance, cells, model
        self._column_of = column_of
        self._terms: list[tuple[int, int, int, int]] = []
        self._seats: list[tuple[int, int, int, int, int]] = []
        self._covers: list[tuple[int, int, int, int]] = []
        self._pinned = {p.option: p.ranks for p in instance.pins if p.ranks is not None}
        before = np.zeros((cells.count, instance.num_ranks + 1), dtype=np.int64)
        onehot = cells.cell_of[None, :] == np.arange(cells.count)[:, None]
        np.cumsum(onehot, axis=1, out=before[:, 1:])
        self._before = before

    def build(self) -> Footprint:
        """Walk over the kept options."""
        if self._cells.count == 1 and len({len(m) for m in self._instance.machines}) == 1:
            return self._pooled()
        for option, column in self._column_of.items():
            ranks = self._pinned.get(option)
            for index, block in enumerate(self._instance.blocks_of(option)):
                view = self._instance.block(block)
                if view.where == Where.EVERY_RANK:
                    self._cover(option, block, column, range(self._cells.count))
                if ranks is not None and view.where != Where.CLUSTER:
                    self._at_pins(view, column, np.asarray(ranks[index], dtype=np.int64))
                else:
                    self._block(option, column, view)
        terms = np.asarray(self._terms, dtype=np.int64).reshape(-1, 4)
        columns, cells, entries, counts = terms.T
        return Footprint(columns, cells, entries, counts, self._seats, self._covers)

    def _cover(self, option: int, block: int, column: int, cells: Iterable[int]) -> None:
        self._covers += [(option, block, cell, column) for cell in cells]

    def _pooled(self) -> Footprint:
        """One cell: places do not matter, so every shard belongs to its option's column."""
        instance = self._instance
        option = np.repeat(instance.option_of, np.diff(instance.block_shards))
        where = np.repeat(instance.block_where, np.diff(instance.block_shards))
        to_column = np.full(instance.num_options, -1, dtype=np.int64)
        to_column[list(self._column_of)] = list(self._column_of.values())
        entry = np.flatnonzero(to_column[option] >= 0)
        cell = np.where(where[entry] == Where.CLUSTER, -1, 0)
        column = to_column[option[entry]]
        covering = [Where.EVERY_RANK]
        if len(instance.machines) == 1:  # a whole machine is then every rank
            covering.append(Where.ONE_MACHINE)
        movable = ~np.isin(where[entry], [*covering, Where.CLUSTER])
        block = np.repeat(np.arange(instance.num_blocks), np.diff(instance.block_shards))
        blocks = np.flatnonzero(np.isin(instance.block_where, covering))
        covers = [
            (int(o), int(b), 0, int(to_column[o]))
            for o, b in zip(instance.option_of[blocks], blocks, strict=True)
            if to_column[o] >= 0
        ]
        seats = [
            (int(option[e]), int(block[e]), int(e), 0, int(c))
            for e, c in zip(entry[movable], column[movable], strict=True)
        ]
        return Footprint(column, cell, entry, shard_counts(instance)[entry], seats, covers)

    def _block(self, option: int, column: int, block: BlockView) -> None:
        if block.where == Where.CLUSTER:
            for entry, count in _runs(block, block.count):
                self._terms.append((column, -1, entry, count))
        elif block.where == Where.EVERY_RANK:
            self._fixed(column, block, None)
        elif block.where == Where.LIST:
            self._fixed(column, block, np.asarray(block.places, dtype=np.int64))
        elif block.where == Where.ANY_RANK:
            self._any_rank(option, column, block)
        else:
            self._machine_block(option, column, block)

    def _fixed(self, column: int, block: BlockView, ranks: IntArray | None) -> None:
        if ranks is None:
            entries, start = np.unique(block.entries, return_index=True)
            ends = np.append(start[1:], self._instance.num_ranks)
            spans = self._before[:, ends] - self._before[:, start]
            for i, entry in enumerate(entries.tolist()):
                for cell in np.flatnonzero(spans[:, i]).tolist():
                    self._terms.append((column, cell, entry, int(spans[cell, i])))
            return
        for position, rank in enumerate(ranks.tolist()):
            self._terms.append((column, int(self._cells.cell_of[rank]), block.entry(position), 1))

    def _at_pins(self, block: BlockView, column: int, ranks: IntArray) -> None:
        if block.shared or block.where in (Where.EVERY_RANK, Where.LIST):
            self._fixed(column, block, ranks)
            return
        cells = np.unique(self._cells.cell_of[ranks])
        times = block.count if block.where == Where.ONE_MACHINE else 1
        for entry, count in _runs(block, len(block.entries)):
            self._split(column, entry, count * times, cells)

    def _split(self, column: int, entry: int, count: int, cells: IntArray) -> list[int]:
        """Columns saying how many of ``count`` equal shards land in each of the cells."""
        if len(cells) == 1:
            self._terms.append((column, int(cells[0]), entry, count))
            return [column]
        first = self._model.columns(len(cells), upper=count)
        made = list(range(first, first + len(cells)))
        self._model.row([*made, column], [1] * len(cells) + [-count], 0, 0)
        for cell, made_column in zip(cells.tolist(), made, strict=True):
            self._terms.append((made_column, cell, entry, 1))
        return made

    def _any_rank(self, option: int, column: int, block: BlockView) -> None:
        ranks = slice(None) if block.places is None else list(block.places)
        cells = np.unique(self._cells.cell_of[ranks])
        for entry, count in _runs(block, block.count):
            made = self._split(column, entry, count, cells)
            self._seat(option, block.index, entry, count, column, made, cells)

    def _seat(
        self, option: int, block: int, entry: int, count: int, column: int,
        made: list[int], cells: IntArray,
    ) -> None:  # fmt: skip
        for cell, one in zip(cells.tolist(), made, strict=True):
            seat = one
            if count > 1 and len(made) > 1:
                seat = self._model.columns(1)
                self._model.row([one, seat], [1, -count], high=0)
                self._model.row([seat, column], [1, -1], high=0)
            self._seats.append((option, block, entry, cell, seat))

    def _machine_block(self, option: int, column: int, block: BlockView) -> None:
        machines = range(len(self._instance.machines)) if block.places is None else block.places
        groups, members = np.unique(self._cells.group_of[list(machines)], return_counts=True)
        chosen = self._choose(column, block, groups, members)
        for group, seat in zip(groups.tolist(), chosen, strict=True):
            allowed = [m for m in machines if self._cells.group_of[m] == group]
            if block.where == Where.ONE_MACHINE:
                times = block.count if seat == column else 1
                self._whole_machine(option, seat, times, block, allowed)
            else:
                self._inside(option, seat, block, group)

    def _choose(
        self, column: int, block: BlockView, groups: IntArray, members: IntArray
    ) -> list[int]:
        count = block.count if block.where == Where.ONE_MACHINE else 1
        if len(groups) == 1:
            return [column]
        first = self._model.columns(len(groups), upper=count)
        chosen = list(range(first, first + len(groups)))
        self._model.row([*chosen, column], [1] * len(chosen) + [-count], 0, 0)
        if count > 1 and block.distinct:
            for one, room in zip(chosen, members.tolist(), strict=True):
                if room < count:
                    self._model.row([one, column], [1, -room], high=0)
        return chosen

    def _whole_machine(
        self, option: int, seat: int, times: int, block: BlockView, allowed: list[int]
    ) -> None:
        """Shards on one machine of a group; where machines differ, the least of each cell."""
        spread = [self._local(block, m) for m in allowed]
        only = len(allowed) == self._cells.group_size[self._cells.group_of[allowed[0]]] == 1
        if only:  # whichever rank of the machine it is, it holds one of the shards
            self._cover(option, block.index, seat, {cell for cell, _ in spread[0]})
        for key in set().union(*spread):
            count = min(s.get(key, 0) for s in spread)
            if count:
                cell, entry = key
                self._terms.append((seat, cell, entry, count * times))
                if not only and times == block.count:
                    self._seats.append((option, block.index, entry, cell, seat))

    def _local(self, block: BlockView, machine: int) -> dict[tuple[int, int], int]:
        counts: dict[tuple[int, int], int] = {}
        for position, rank in enumerate(self._instance.machines[machine]):
            key = (int(self._cells.cell_of[rank]), block.entry(position))
            counts[key] = counts.get(key, 0) + 1
        return counts

    def _inside(self, option: int, seat: int, block: BlockView, group: int) -> None:
        cells = np.flatnonzero(self._cells.cell_group == group)
        for entry, count in _runs(block, block.count):
            made = self._split(seat, entry, count, cells)
            self._seat(option, block.index, entry, count, seat, made, cells)


def _runs(block: BlockView, count: int) -> list[tuple[int, int]]:
    """Shard entries of a block with how often each occurs."""
    if block.shared:
        return [(int(block.entries[0]), count)]
    entries, counts = np.unique(block.entries, return_counts=True)
    return list(zip(entries.tolist(), counts.tolist(), strict=True))
