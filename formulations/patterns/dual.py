"""The dual of the linear program over patterns: what shards, loads and memory are paid.

It maximises the sum of every table's lightest choice, floor included, less what a rank holds at
most and less the memory. All prices are those of all ranks together, in thousandths of a plan's
cost.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from formulations.instance import IntArray
from formulations.patterns.found import Floats, Mask
from formulations.patterns.merged import Merged

#: Prices of loads are preferred to weights by so little.
_PREFER = 1e-5
#: Share of one in what is between two.
_CENTER = 0.5


@dataclass(frozen=True, eq=False)
class Weights:
    """What is paid for a shard of each kind beside the price of its loads; for a load of 1 in each
    set, and for one in whole steps; for all of each resource."""

    weight: Floats
    loads: Floats
    memory: Floats

    def near(self, other: Weights) -> Weights:
        """Between these and others."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Weights(*(_CENTER * a + (1 - _CENTER) * b for a, b in pairs))


class Choices:
    """The choices of classes, as arrays.

    Attributes
    ----------
    group, times : int64 array [choices], float array [classes]
        Class of a choice, tables of a class.
    amounts : float array [choices, kinds]
        Shards of each kind.
    """

    def __init__(self, merged: Merged) -> None:
        self.group = np.asarray([group for group, _ in merged.choices])
        self.times = np.asarray(merged.times, dtype=float)
        self.amounts = np.zeros((len(merged.choices), len(merged.first)))
        for row, (_, choice) in zip(self.amounts, merged.choices, strict=True):
            for kind, number in choice.shards:
                row[kind] += number
        self.floor = np.asarray([choice.floor for _, choice in merged.choices], dtype=float)
        self.use = np.asarray([choice.use for _, choice in merged.choices], dtype=float)

    def shut(self, outside: Mask) -> Mask:
        """Choices with a shard of some kinds, bool array [choices]."""
        return np.asarray(self.amounts @ outside > 0)


class Dual:
    """The program in a box, without patterns at first.

    Parameters
    ----------
    choices : Choices
    loads : int64 array [kinds, 3]
        Loads of a shard in both sets, and in the second in whole steps.
    capacity : list of int
        Of each resource.
    outside : bool array [kinds]
        Kinds of shards that do not fit in the box.
    ranks : int
    unit : float
        A thousandth of the plan's cost.
    dear : float
        The most that a load may cost.
    """

    def __init__(
        self, choices: Choices, loads: IntArray, capacity: list[int], outside: Mask, ranks: int,
        unit: float, dear: float,
    ) -> None:  # fmt: skip
        import highspy

        self._unit, self._infinity = unit, highspy.kHighsInf
        # where a box has no plan, prices grow without limit; the plan's cost is more than enough
        self.enough = 1000.0 * ranks
        kinds, classes = len(loads), len(choices.times)
        self._loads_at, self._most_at = kinds, kinds + 3 + classes
        free, zero = np.full(classes + 1, self._infinity), np.zeros(kinds + 3)
        memory = np.zeros(len(capacity))
        self._lp = lp = highspy.Highs()
        lp.setOptionValue("output_flag", False)
        lp.addVars(
            self._most_at + 1 + len(capacity),
            np.concatenate([zero, -free, memory]),
            np.concatenate([np.full(kinds, self.enough), np.full(3, dear), free,
                            np.full(len(capacity), self.enough)]),
        )  # fmt: skip
        prefer = _PREFER if dear else 0.0
        cost = np.concatenate([np.full(kinds, prefer), np.zeros(3), -choices.times, [1.0],
                               np.ones(len(capacity))])  # fmt: skip
        lp.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        own = np.eye(classes)[choices.group]
        use = choices.use / np.maximum(1, capacity)
        per_rank = choices.amounts / ranks
        rows = np.concatenate([-per_rank, -per_rank @ loads / unit, own,
                               np.zeros((len(own), 1)), -use], axis=1)  # fmt: skip
        self._add_rows(rows, np.where(choices.shut(outside), self._infinity, choices.floor / unit))
        self._rows = len(rows)

    def _add_rows(self, rows: Floats, most: Floats) -> None:
        at, index = np.nonzero(rows)
        starts = np.searchsorted(at, np.arange(len(rows))).astype(np.int32)
        least = np.full(len(rows), -self._infinity)
        self._lp.addRows(
            len(rows), least, most, len(index), starts, index.astype(np.int32), rows[at, index]
        )

    def add(self, numbers: IntArray, heights: IntArray) -> None:
        """Add patterns: what each is worth is paid by its heights.

        Parameters
        ----------
        numbers : int64 array [patterns, kinds]
        heights : int64 array [patterns, 3]
            Both heights, and the second in whole steps.
        """
        paid = heights / self._unit
        columns = self._lp.getNumCol()
        rows = np.zeros((len(numbers), columns))
        rows[:, : self._loads_at] = numbers
        rows[:, self._loads_at : self._loads_at + 3] = paid
        rows[:, self._most_at] = -1.0
        self._add_rows(rows, paid[:, :2].sum(axis=1))

    def limit(self, most: float) -> None:
        """Let weights of shards be up to a number."""
        kinds, most = np.arange(self._loads_at, dtype=np.int32), min(most, self.enough)
        zero = np.zeros(len(kinds))
        self._lp.changeColsBounds(len(kinds), kinds, zero, np.full(len(kinds), most))

    def run(self) -> tuple[Weights, float, float]:
        """Solve it: what is paid, what a rank holds at most, and the value of the program."""
        self._lp.run()
        value: Any = np.asarray(self._lp.getSolution().col_value)
        paid = np.maximum(0.0, value)  # a solver may leave -ε
        found = Weights(
            paid[: self._loads_at], paid[self._loads_at : self._loads_at + 3],
            paid[self._most_at + 1 :],
        )  # fmt: skip
        cost = float(self._lp.getInfo().objective_function_value)
        return found, float(value[self._most_at]), -cost * self._unit

    def shares(self) -> tuple[Floats, Floats]:
        """How often the solution takes each choice, and the share of each pattern."""
        dual = np.abs(np.asarray(self._lp.getSolution().row_dual))
        amount, share = dual[: self._rows], dual[self._rows :]
        return amount, share / max(1e-12, share.sum())
