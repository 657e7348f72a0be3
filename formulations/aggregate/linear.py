"""A linear model in integers, kept as arrays until a solver takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.instance import IntArray

#: Stands for "no limit" in rows and columns.
FREE = 2**62


@dataclass(frozen=True, eq=False)
class Rows:
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


class LinearModel:
    """Columns and rows, added in bulk; minimise ``objective``."""

    def __init__(self) -> None:
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.whole: list[bool] = []
        self.unit: list[int] = []
        self.objective: dict[int, int] = {}
        self.offset = 0
        self._columns: list[Sequence[int] | IntArray] = []
        self._coefficients: list[Sequence[int] | IntArray] = []
        self._low: list[int] = []
        self._high: list[int] = []

    @property
    def num_columns(self) -> int:
        """Columns so far."""
        return len(self.lower)

    @property
    def num_rows(self) -> int:
        """Rows so far."""
        return len(self._low)

    def columns(self, count: int, upper: int = 1, whole: bool = True, unit: int = 1) -> int:
        """Add columns in ``[0, upper]``; returns the index of the first.

        ``unit`` is a typical size, used to scale for floating-point solvers.
        """
        first = self.num_columns
        self.lower += [0] * count
        self.upper += [int(upper)] * count
        self.whole += [whole] * count
        self.unit += [max(1, int(unit))] * count
        return first

    def row(
        self,
        columns: Sequence[int] | IntArray,
        coefficients: Sequence[int] | IntArray,
        low: int = -FREE,
        high: int = FREE,
    ) -> int:
        """Add ``low ≤ Σ coefficient·x ≤ high``; returns its index."""
        self._columns.append(columns)
        self._coefficients.append(coefficients)
        self._low.append(int(low))
        self._high.append(int(high))
        return self.num_rows - 1

    def rows(self) -> Rows:
        """All rows as arrays."""
        lengths = [len(c) for c in self._columns]
        start = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=start[1:])
        empty = np.empty(0, dtype=np.int64)
        return Rows(
            start=start,
            column=np.concatenate(
                [np.asarray(c, dtype=np.int64) for c in self._columns] or [empty]
            ),
            coefficient=np.concatenate(
                [np.asarray(c, dtype=np.int64) for c in self._coefficients] or [empty]
            ),
            low=np.asarray(self._low, dtype=np.int64),
            high=np.asarray(self._high, dtype=np.int64),
        )
