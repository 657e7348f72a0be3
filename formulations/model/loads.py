"""The load of every place as rows over the columns, and the constant loads of closed tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.model.columns import Columns
from formulations.model.linear import FREE, LinearModel, Name, merged
from formulations.result.check import compute_loads, moved_bytes, moved_tables
from formulations.result.placement import Placement

#: The load that all ranks share is a column of its own where it has more terms than this.
SHORT = 4


@dataclass(frozen=True, eq=False)
class Row:
    """Σ coefficient·column, of ``size`` ranks together."""

    place: int
    size: int
    column: IntArray
    coefficient: IntArray


def collect(key: IntArray, amount: IntArray) -> tuple[IntArray, IntArray]:
    """Sums of amounts of equal keys, sorted by key; sums of 0 are left out."""
    key, amount = merged(key, amount)
    return key[amount != 0], amount[amount != 0]


class Loads:
    """Sums over the shards that the columns place, for any one value per shard entry [entries]."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.model: LinearModel = columns.model
        self._width = columns.model.num_columns
        self._owner, self._upper = columns.owners, columns.model.upper
        self._table = columns.candidates.table

    def even(self, values: IntArray) -> Row:
        """The load that all ranks share."""
        column, amount = collect(self._columns.even.column, values[self._columns.even.entry])
        return Row(-1, 1, column, amount)

    def rows(self, values: IntArray, place_of: IntArray, sizes: IntArray) -> list[Row]:
        """One row for each place, without the load that all ranks share; ``place_of`` [cells]."""
        terms = self._columns.terms
        amount = values[terms.entry] * terms.times
        used = amount != 0
        key = place_of[terms.cell[used]] * self._width + terms.column[used]
        key, amount = collect(key, amount[used])
        ends = np.searchsorted(key, np.arange(len(sizes) + 1) * self._width)
        column = key % max(1, self._width)
        return [
            Row(place, int(sizes[place]), column[a:b], amount[a:b])
            for place, (a, b) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        ]

    def everything(self, values: IntArray, off: bool = True) -> Row:
        """All shards in one row; with ``off`` also those on no rank."""
        columns = self._columns
        ranks = len(columns.partition.cell_of)
        column = [columns.terms.column, columns.even.column]
        amount = [
            values[columns.terms.entry] * columns.terms.times,
            values[columns.even.entry] * ranks,
        ]
        if off:
            column.append(columns.off.column)
            amount.append(values[columns.off.entry] * columns.off.times)
        return Row(-1, ranks, *collect(np.concatenate(column), np.concatenate(amount)))

    def most(self, row: Row) -> int:
        """An upper bound on a row's value: the sum of every table's most expensive candidate."""
        coefficient = np.maximum(row.coefficient, 0).astype(np.float64)
        placed = row.column < self._width
        amount = coefficient[placed] * self._upper[row.column[placed]]
        candidate = np.zeros(len(self._table))
        np.add.at(candidate, self._owner[row.column[placed]], amount)
        table = np.zeros(self._columns.candidates.instance.num_tables)
        np.maximum.at(table, self._table, candidate)
        total = float(table.sum())
        if not placed.all():
            derived = self.model.upper[row.column[~placed]]
            total += float((coefficient[~placed] * derived).sum())
        return int(total * (1 + 1e-9)) + 1

    def activity(self, row: Row) -> float:
        """Approximately Σ |coefficient| × upper bound."""
        upper = self.model.upper[row.column].astype(np.float64)
        return float((np.abs(row.coefficient) * upper).sum())

    def with_even(self, even: Row, rows: list[Row], name: Name) -> list[Row]:
        """Rows plus the load that all ranks share, which becomes a column where it is long."""
        if not rows or not len(even.column):
            return rows
        if len(rows) > 1:
            even = self.shortened(("carried", *name), even)
        return [self._joined(even, row) for row in rows]

    def shortened(self, name: Name, row: Row) -> Row:
        """A row of one rank, as a column of its own where it is long."""
        if len(row.column) <= SHORT:
            return row
        upper = min(self.most(row), FREE // 2)
        base = self.model.columns(1, upper)
        self.model.row(name, np.append(row.column, base), np.append(row.coefficient, -1), 0, 0)
        return Row(-1, 1, base, np.ones(1, dtype=np.int64))

    def _joined(self, even: Row, row: Row) -> Row:
        column = np.concatenate([row.column, even.column])
        amount = np.concatenate([row.coefficient, even.coefficient * row.size])
        return Row(row.place, row.size, *collect(column, amount))


def distinct(rows: list[Row], room: IntArray) -> list[Row]:
    """The rows without duplicates: of equal rows, the one with the least room [places]."""
    tightest: dict[tuple[int, bytes, bytes], Row] = {}
    for row in rows:
        key = (row.size, row.column.tobytes(), row.coefficient.tobytes())
        known = tightest.get(key)
        if known is None or room[row.place] < room[known.place]:
            tightest[key] = row
    return list(tightest.values())


@dataclass(frozen=True, eq=False)
class Rest:
    """Loads, levels and moves of the closed tables.

    Attributes
    ----------
    empty : bool
        Whether no table is closed.
    cost : int64 array [ranks, phases]
    off_cost : int64 array [phases]
    use : list [resources] of int64 array [places]
    levels : dict of fusion group to level
    moved, moved_bytes : int
    """

    empty: bool
    cost: IntArray
    off_cost: IntArray
    use: list[IntArray]
    levels: dict[int, int]
    moved: int = 0
    moved_bytes: int = 0


def nothing_closed(instance: Instance) -> Rest:
    """No closed table."""
    shape = (instance.num_ranks, len(instance.phases))
    use = [np.zeros(len(r.capacity), dtype=np.int64) for r in instance.resources]
    none = np.zeros(len(instance.phases), dtype=np.int64)
    return Rest(True, np.zeros(shape, dtype=np.int64), none, use, {})


def rest_of(instance: Instance, placement: Placement, opened: IntArray) -> Rest:
    """Loads, levels and moves of all tables but the open ones."""
    closed = np.setdiff1d(np.arange(instance.num_tables), opened)
    loads = compute_loads(instance, placement, closed.tolist())
    options = placement.options[closed]
    options = options[instance.option_group[options] >= 0]
    levels = dict(
        zip(
            instance.option_group[options].tolist(),
            instance.option_level[options].tolist(),
            strict=True,
        )
    )
    moved = [t for t in moved_tables(instance, placement) if t in set(closed.tolist())]
    size = moved_bytes(instance, placement, moved)
    return Rest(False, loads.cost, loads.unplaced_cost, loads.use, levels, len(moved), size)
