"""The columns of the model, and the load that one unit of each puts on the cells.

x_c ∈ {0, 1} says that candidate c is chosen; n counts the shards of one kind of a block in a cell;
y says whether a block lies inside a machine of a kind, or how many machines of that kind it takes.
Shards that can only lie in one cell need no column of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.instance import IntArray
from formulations.instance.candidates import Candidates, Inside, ShardKinds, Spread, Whole
from formulations.model.linear import LinearModel, pairs, stacked
from formulations.model.partition import MachineKind, Partition

_NONE = np.empty(0, dtype=np.int64)


@dataclass(eq=False)
class Table:
    """Integer columns of equal length by name, filled part by part."""

    names: tuple[str, ...]
    parts: list[tuple[IntArray, ...]] = field(default_factory=list)

    def add(self, *values: IntArray | Sequence[int] | int) -> None:
        """Add rows; integers are repeated."""
        arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.int64) for v in values))
        self.parts.append(tuple(a.ravel() for a in arrays))

    def __getattr__(self, name: str) -> IntArray:
        if name not in self.names:
            raise AttributeError(name)
        if len(self.parts) != 1:
            joined = zip(*self.parts, strict=True) if self.parts else ([] for _ in self.names)
            self.parts = [tuple(np.concatenate([_NONE, *parts]) for parts in joined)]
        return self.parts[0][self.names.index(name)]


@dataclass(eq=False)
class Columns:
    """Placement columns of candidates over a partition.

    Attributes
    ----------
    x : int64 array [candidates]
    owner : list of int64 arrays
        Candidate of every column so far, in order.
    terms : Table of (column, cell, entry, times)
        One unit of the column puts ``times`` shards like the entry into the cell.
    even : Table of (column, entry)
        One unit puts such a shard on every rank.
    off : Table of (column, entry, times)
        One unit puts shards on no rank.
    assignments : Table of (candidate, block, entry, count, cell, column, each, kind)
        Freely placed shards: of the block's ``count`` shards like the entry, ``each`` × column lie
        in the cell because the block chose this kind of machine (−1: it chooses no machine).
    taken : Table of (candidate, block, kind, column, each)
        A block takes, or lies inside, ``each`` × column machines of the kind.
    machines : list of (Whole, kinds of machine, columns [blocks, kinds])
    """

    model: LinearModel
    candidates: Candidates
    partition: Partition
    x: IntArray = field(default_factory=lambda: _NONE)
    owner: list[IntArray] = field(default_factory=list)
    terms: Table = field(default_factory=lambda: Table(("column", "cell", "entry", "times")))
    even: Table = field(default_factory=lambda: Table(("column", "entry")))
    off: Table = field(default_factory=lambda: Table(("column", "entry", "times")))
    assignments: Table = field(
        default_factory=lambda: Table(
            ("candidate", "block", "entry", "count", "cell", "column", "each", "kind")
        )
    )
    taken: Table = field(
        default_factory=lambda: Table(("candidate", "block", "kind", "column", "each"))
    )
    machines: list[tuple[Whole, list[int], IntArray]] = field(default_factory=list)

    def new(self, candidate: IntArray, upper: int | IntArray = 1) -> IntArray:
        """Add columns that are 0 unless their candidate is chosen."""
        self.owner.append(candidate)
        return self.model.columns(len(candidate), upper)

    @property
    def owners(self) -> IntArray:
        """Candidate of each placement column, int64 array."""
        self.owner = [np.concatenate([_NONE, *self.owner])]
        return self.owner[0]


def add_columns(model: LinearModel, candidates: Candidates, partition: Partition) -> Columns:
    """Add the columns of all candidates, and the rows that place every shard of a chosen one."""
    columns = Columns(model, candidates, partition)
    columns.x = columns.new(np.arange(candidates.count))
    columns.even.add(columns.x[candidates.even_candidate], candidates.even_entry)
    off = columns.x[candidates.off_candidate]
    columns.off.add(off, candidates.off_entry, candidates.off_times)
    _fixed(columns)
    for group in candidates.spread:
        _spread(columns, group)
    for inside in candidates.inside:
        _inside(columns, inside)
    for whole in candidates.whole:
        _whole(columns, whole)
    return columns


def choose_one(columns: Columns, tables: IntArray) -> None:
    """Add Σ x_c = 1 over the candidates c of each of the given tables."""
    place = np.full(columns.candidates.instance.num_tables, -1, dtype=np.int64)
    place[tables] = np.arange(len(tables))
    row = place[columns.candidates.table]
    one = np.ones(len(row), dtype=np.int64)
    columns.model.rows(("option",), tables, (row, columns.x, one), 1, 1)


def _fixed(columns: Columns) -> None:
    """Shards on given ranks, added up cell by cell."""
    fixed, partition = columns.candidates.fixed, columns.partition
    if len(partition.cell_size) == 1:
        column = columns.x[fixed.candidate]
        columns.terms.add(column, 0, fixed.entry, fixed.length * fixed.times)
        return
    candidate, rank, entry, times = fixed.by_rank
    columns.terms.add(columns.x[candidate], partition.cell_of[rank], entry, times)


def _spread(columns: Columns, group: Spread) -> None:
    """Divide shards over the open cells among those that their ranks lie in."""
    partition = columns.partition
    cell = partition.cell_of[group.ranks]
    there = partition.open[cell]
    cells, inverse = np.unique(cell[there], return_inverse=True)
    room = None
    if group.room is not None:
        room = np.zeros(len(cells), dtype=np.int64)
        np.add.at(room, inverse, group.room[there])
    _divide(columns, (columns.x[group.candidate], group), cells, room, -1)


def _divide(
    columns: Columns,
    home: tuple[IntArray, Spread | Inside],
    cells: IntArray,
    room: IntArray | None,
    machine: int,
) -> None:
    """Divide the shards of blocks over cells if their home column is 1.

    Σ over cells of n(kind, cell) = count(kind)·home, and where the kinds of a block share limited
    room, Σ over kinds of n(kind, cell) ≤ room(cell)·home.
    """
    at, group = home
    kinds = group.kinds
    candidate = group.candidate[kinds.owner]
    block = group.block[kinds.owner]
    fits = np.full(len(at), bool(len(cells)))
    if room is not None:
        fits &= group.count <= room.sum()
    columns.model.forbid(at[~fits])
    if len(cells) < 2:
        if len(cells):
            columns.terms.add(at[kinds.owner], cells[0], kinds.entry, kinds.count)
            columns.assignments.add(
                candidate, block, kinds.entry, kinds.count, cells[0], at[kinds.owner],
                kinds.count, machine,
            )  # fmt: skip
        return
    upper = np.broadcast_to(kinds.count[:, None], (len(kinds.count), len(cells)))
    if room is not None:
        upper = np.minimum(upper, room)
    made = columns.new(np.repeat(candidate, len(cells)), upper.ravel()).reshape(upper.shape)
    columns.terms.add(made, cells, kinds.entry[:, None], 1)
    columns.assignments.add(
        candidate[:, None], block[:, None], kinds.entry[:, None], kinds.count[:, None], cells,
        made, 1, machine,
    )  # fmt: skip
    rows = np.arange(len(kinds.count))
    columns.model.rows(
        ("place",),
        np.stack([candidate, block, kinds.entry, np.full_like(block, machine)], axis=1),
        stacked(pairs(len(rows), made), (rows, at[kinds.owner], -kinds.count)),
        0,
        0,
    )
    if room is not None:
        _share_room(columns, at, group, made, (cells, room))


def _share_room(
    columns: Columns,
    at: IntArray,
    group: Spread | Inside,
    made: IntArray,
    place: tuple[IntArray, IntArray],
) -> None:
    """Add the room rows of blocks with several kinds (for one kind the columns' limits suffice)."""
    cells, room = place
    kinds: ShardKinds = group.kinds
    several = np.bincount(kinds.owner, minlength=len(at)) > 1
    blocks = np.flatnonzero(several)
    if not len(blocks):
        return
    index = np.full(len(at), -1, dtype=np.int64)
    index[blocks] = np.arange(len(blocks))
    mine = several[kinds.owner]
    row = index[kinds.owner[mine]][:, None] * len(cells) + np.arange(len(cells))
    homes = np.arange(len(blocks) * len(cells))
    entries = stacked(
        (row.ravel(), made[mine].ravel(), np.ones(row.size, dtype=np.int64)),
        (homes, np.repeat(at[blocks], len(cells)), -np.tile(room, len(blocks))),
    )
    keys = np.stack([np.repeat(group.block[blocks], len(cells)), np.tile(cells, len(blocks))], 1)
    columns.model.rows(("room",), keys, entries, high=0)


def _inside(columns: Columns, group: Inside) -> None:
    """Add Σ over kinds of machine q of y(block, q) = x, and divide the shards within each q."""
    partition = columns.partition
    kinds = [
        (index, kind)
        for index, kind in enumerate(partition.kinds)
        if np.isin(kind.machines, group.machines).any() and partition.open[kind.cells].any()
    ]
    x = columns.x[group.candidate]
    if not kinds:
        columns.model.forbid(x)
        return
    homes = _choose(columns, group, [k for k, _ in kinds], np.ones(len(kinds), dtype=np.int64))
    for (index, kind), home in zip(kinds, homes.T, strict=True):
        cells, size = np.unique(kind.cells[partition.open[kind.cells]], return_counts=True)
        _divide(columns, (home, group), cells, size if group.distinct else None, index)


def _choose(columns: Columns, group: Inside | Whole, kinds: list[int], upper: IntArray) -> IntArray:
    """Columns [blocks, kinds]: how many machines of each kind a block takes; x if there is one
    kind."""
    x = columns.x[group.candidate]
    times = group.count if isinstance(group, Whole) else np.ones_like(group.count)
    blocks = np.arange(len(x))
    if len(kinds) == 1:
        columns.taken.add(group.candidate, group.block, kinds[0], x, times)
        return x[:, None]
    most = np.minimum(times[:, None], upper)
    made = columns.new(np.repeat(group.candidate, len(kinds)), most.ravel()).reshape(most.shape)
    columns.taken.add(group.candidate[:, None], group.block[:, None], kinds, made, 1)
    columns.model.rows(
        ("machine",),
        np.stack([group.candidate, group.block], axis=1),
        stacked(pairs(len(blocks), made), (blocks, x, -times)),
        0,
        0,
    )
    return made


def _whole(columns: Columns, group: Whole) -> None:
    """Add Σ over kinds of machine q of y(block, q) = count·x; a machine gets a shard on each
    rank."""
    kinds: list[tuple[int, MachineKind, int]] = []
    for index, kind in enumerate(columns.partition.kinds):
        allowed = int(np.isin(kind.machines, group.machines).sum())
        if allowed:
            kinds.append((index, kind, allowed if group.distinct else int(group.count.max())))
    upper = np.asarray([most for _, _, most in kinds], dtype=np.int64)
    made = _choose(columns, group, [i for i, _, _ in kinds], upper)
    times = group.count if len(kinds) == 1 else np.ones_like(group.count)
    columns.machines.append((group, [i for i, _, _ in kinds], made))
    if group.distinct:
        columns.model.forbid(columns.x[group.candidate[group.count > upper.sum()]])
    for column, (_, kind, _) in zip(made.T, kinds, strict=True):
        if group.entries.shape[1] == 1:
            cells, size = np.unique(kind.cells, return_counts=True)
            columns.terms.add(column[:, None], cells, group.entries, times[:, None] * size)
        else:
            columns.terms.add(column[:, None], kind.cells, group.entries, times[:, None])
