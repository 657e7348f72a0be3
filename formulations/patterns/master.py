"""The linear program over patterns: how many ranks the tables need at a target, by column
generation.

Its dual is solved: it weighs shards so that no pattern weighs more than 1, and maximises the
summed weight of each table's lightest option. That sum is the number of ranks needed (Gilmore and
Gomory, "A linear programming approach to the cutting-stock problem", Operations Research 9, 1961);
here an option is chosen for each table as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.instance import IntArray
from formulations.patterns.found import Floats, Mask
from formulations.patterns.knapsack import heaviest
from formulations.patterns.portions import Portions

_NEAR = 1e-7


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution of the linear program.

    Attributes
    ----------
    ranks : float
        A lower bound on the ranks needed.
    weight : float array [entries]
        Weight of one shard; no pattern weighs more than 1.
    shares : float array [options]
        The share of each option that the program takes.
    """

    ranks: float
    weight: Floats
    shares: Floats


class Master:
    """The program at one target; it retains its patterns when the options kept change.

    Parameters
    ----------
    portions : Portions
    target : int
    patterns : set of tuple of int
        Known patterns as tuples of portions; new ones are added.
    over : callable
        Returns whether to stop.
    """

    def __init__(
        self,
        portions: Portions,
        target: int,
        patterns: set[tuple[int, ...]],
        over: Callable[[], bool],
    ) -> None:
        import highspy

        self._portions, self._target, self._patterns = portions, target, patterns
        self._over, self._infinity = over, highspy.kHighsInf
        self._options = np.unique(portions.option)
        self._entries, self._column = np.unique(portions.entry, return_inverse=True)
        self._lp: Any = highspy.Highs()
        self._lp.setOptionValue("output_flag", False)
        count = len(self._entries)
        for _ in range(count):
            self._lp.addVar(0.0, self._infinity)
        for _ in range(portions.instance.num_tables):
            self._lp.addVar(0.0, self._infinity)
            self._lp.changeColCost(self._lp.getNumCol() - 1, -1.0)
        for option in self._options.tolist():
            own = np.unique(portions.entry[portions.option == option])
            table = count + int(portions.instance.table_of[option])
            index = np.append(np.searchsorted(self._entries, own), table).astype(np.int32)
            values = np.append(-portions.number[own].astype(np.float64), 1.0)
            self._lp.addRow(-self._infinity, 0.0, len(index), index, values)
        alone = np.flatnonzero((portions.load <= target) & (portions.copies == 1))
        for pattern in [*patterns, *((int(p),) for p in alone)]:
            if portions.load[list(pattern)].sum() <= target:
                self._add(np.asarray(pattern, dtype=np.int64))

    def solve(self, keep: Mask, fits: bool = False) -> Solved | None:
        """Add patterns until none weighs more than 1; None if ``over`` stops it first.

        Ends early once more ranks are needed than there are. With ``fits``, a rank can hold every
        pattern, and the number of ranks is no bound.
        """
        portions = self._portions
        self._restrict(keep)
        while not self._over():
            self._lp.run()
            value = np.asarray(self._lp.getSolution().col_value)
            needed = -float(self._lp.getInfo().objective_function_value)
            weight: Floats = np.asarray(value[self._column] * portions.copies, dtype=np.float64)
            most, pattern = heaviest(portions, weight, self._target, keep, fits)
            enough = needed / max(most, 1.0) > portions.instance.num_ranks + _NEAR
            if most <= 1 + _NEAR or (enough and not fits):
                each = np.zeros(len(portions.number))
                each[self._entries] = value[: len(self._entries)] / max(most, 1.0)
                return Solved(needed / max(most, 1.0), each, self._shares(keep))
            self._add(pattern)
            self._patterns.add(tuple(pattern.tolist()))
        return None

    def _restrict(self, keep: Mask) -> None:
        """Enforce the rows of the options kept, and relax the others."""
        for row, option in enumerate(self._options.tolist()):
            upper = 0.0 if keep[option] else self._infinity
            self._lp.changeRowBounds(row, -self._infinity, upper)

    def _add(self, pattern: IntArray) -> None:
        column = self._column[pattern].astype(np.int32)
        copies = self._portions.copies[pattern].astype(np.float64)
        self._lp.addRow(-self._infinity, 1.0, len(pattern), column, copies)

    def _shares(self, keep: Mask) -> Floats:
        dual = np.abs(np.asarray(self._lp.getSolution().row_dual)[: len(self._options)])
        shares = np.zeros(len(keep))
        shares[self._options] = dual
        return np.where(keep, shares, 0.0)
