"""An integer linear model with named rows, kept as arrays until it is handed to a solver."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.instance import IntArray

#: Means "no limit" in rows.
FREE = 2**62

Name = tuple[Hashable, ...]
Integers = Sequence[int] | IntArray


@dataclass(frozen=True, eq=False)
class Matrix:
    """A compressed row matrix with limits: ``low ≤ A x ≤ high``.

    Attributes
    ----------
    start : int64 array [rows + 1]
    column, coefficient : int64 array [nonzeros]
    low, high : int64 array [rows]
        ±:data:`FREE`: no limit.
    """

    start: IntArray
    column: IntArray
    coefficient: IntArray
    low: IntArray
    high: IntArray


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Rows that were added together: the prefix of their names, their keys and their entries."""

    first: int
    prefix: Name
    keys: IntArray
    row: IntArray
    column: IntArray
    coefficient: IntArray
    low: IntArray
    high: IntArray


@dataclass(eq=False)
class LinearModel:
    """Integer columns from 0 up and named rows, added in bulk; minimise ``cost`` + ``offset``.

    A row's name is its family and key, such as ``("capacity", "hbm", cell)``.

    Attributes
    ----------
    scale : int
        Costs were divided by this, rounding down: ``scale`` × a bound of the model is a bound in
        true cost.
    """

    scale: int = 1
    offset: int = 0
    cost_columns: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    cost: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    num_columns: int = 0
    num_rows: int = 0
    _upper: list[IntArray] = field(default_factory=list)
    _chunks: list[_Chunk] = field(default_factory=list)

    def columns(self, count: int, upper: int | IntArray = 1) -> IntArray:
        """Add columns in ``[0, upper]``; returns their indices."""
        self._upper.append(np.broadcast_to(np.asarray(upper, dtype=np.int64), (count,)).copy())
        self.num_columns += count
        return np.arange(self.num_columns - count, self.num_columns)

    @property
    def upper(self) -> IntArray:
        """Largest value of every column, int64 array [columns]."""
        self._upper = [np.concatenate([np.empty(0, dtype=np.int64), *self._upper])]
        return self._upper[0]

    def forbid(self, columns: Integers) -> None:
        """Hold columns at 0."""
        self.upper[np.asarray(columns, dtype=np.int64)] = 0

    def rows(
        self,
        prefix: Name,
        keys: IntArray,
        entries: tuple[IntArray, IntArray, IntArray],
        low: int | IntArray = -FREE,
        high: int | IntArray = FREE,
    ) -> None:
        """Add rows ``low ≤ Σ coefficient·x ≤ high``.

        Parameters
        ----------
        prefix : tuple
            First part of the names.
        keys : int64 array [rows] or [rows, k]
            The rest of each name.
        entries : (row, column, coefficient)
            int64 arrays [nonzeros]; ``row`` counts from 0 among the rows added.
        """
        keys = np.asarray(keys, dtype=np.int64)
        keys = keys[:, None] if keys.ndim == 1 else keys
        row, column, coefficient = (np.asarray(part, dtype=np.int64) for part in entries)
        count = len(keys)
        if not count:
            return
        ends = [np.broadcast_to(np.asarray(e, dtype=np.int64), (count,)) for e in (low, high)]
        self._chunks.append(
            _Chunk(self.num_rows, prefix, keys, row, column, coefficient, ends[0], ends[1])
        )
        self.num_rows += count

    def row(
        self,
        name: Name,
        columns: Integers,
        coefficients: Integers,
        low: int = -FREE,
        high: int = FREE,
    ) -> None:
        """Add one row."""
        column = np.asarray(columns, dtype=np.int64)
        entries = (np.zeros_like(column), column, np.asarray(coefficients, dtype=np.int64))
        self.rows(name, np.empty((1, 0), dtype=np.int64), entries, low, high)

    def minimise(self, columns: Integers, cost: Integers, offset: int = 0) -> None:
        """Set the objective."""
        self.cost_columns = np.asarray(columns, dtype=np.int64)
        self.cost = np.asarray(cost, dtype=np.int64)
        self.offset = offset

    def value(self, values: IntArray) -> int:
        """The objective at given values."""
        return self.offset + int(self.cost @ np.asarray(values, dtype=np.int64)[self.cost_columns])

    def name(self, row: int) -> Name:
        """The name of a row."""
        chunk = self._chunks[bisect_right([c.first for c in self._chunks], row) - 1]
        return (*chunk.prefix, *chunk.keys[row - chunk.first].tolist())

    def matrix(self) -> Matrix:
        """All rows as arrays; in a row the columns are sorted and each occurs once."""
        none, parts, width = np.empty(0, dtype=np.int64), self._chunks, max(1, self.num_columns)
        row = np.concatenate([none, *(c.row + c.first for c in parts)])
        column = np.concatenate([none, *(c.column for c in parts)])
        coefficient = np.concatenate([none, *(c.coefficient for c in parts)])
        key, coefficient = merged(row * width + column, coefficient)
        return Matrix(
            start=np.searchsorted(key, np.arange(self.num_rows + 1) * width),
            column=key % width,
            coefficient=coefficient,
            low=np.concatenate([none, *(c.low for c in parts)]),
            high=np.concatenate([none, *(c.high for c in parts)]),
        )


def merged(key: IntArray, amount: IntArray) -> tuple[IntArray, IntArray]:
    """Sums of amounts of equal keys, sorted by key."""
    order = np.argsort(key, kind="stable")
    key, amount = key[order], amount[order]
    first = np.flatnonzero(np.append(True, np.diff(key) != 0))[: len(key)]
    return (key[first], np.add.reduceat(amount, first)) if len(key) else (key, amount)


def pairs(rows: int, columns: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Entries, all 1, of rows that each have the same number of columns, int64 array [rows, k]."""
    width = columns.size // max(1, rows)
    return (
        np.repeat(np.arange(rows), width),
        columns.ravel(),
        np.ones(columns.size, dtype=np.int64),
    )


def stacked(*parts: tuple[IntArray, IntArray, IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """Entries of the same rows, one after another."""
    row, column, coefficient = (np.concatenate(p) for p in zip(*parts, strict=True))
    return row, column, coefficient
