"""A run of tables, remembered well enough to walk back from any final cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from formulations.baselines.dp_model.transition import Cells, Choices, Grid, Steps, step
from formulations.clock import OutOfTime
from formulations.instance import IntArray

#: Bytes that a remembered step takes a state.
_STEP_BYTES = 5


class Trellis:
    """The states after every table of a run.

    All steps are remembered while they fit in ``memory``; otherwise only the states at the start
    of every √n-th table are, and a walk back repeats one stretch at a time: twice the work, and
    memory for √n instead of n tables.

    Parameters
    ----------
    start : Cells
    tables : sequence of Choices
    grid : Grid
    memory : int
        Bytes for remembered steps.
    over : callable
        Asked before every table; True ends the run.

    Raises
    ------
    OutOfTime
        When ``over`` says so.
    """

    def __init__(
        self,
        start: Cells,
        tables: Sequence[Choices],
        grid: Grid,
        memory: int,
        over: Callable[[], bool],
    ) -> None:
        self._tables, self._grid, self._over = tables, grid, over
        fits = len(tables) * grid.cells * _STEP_BYTES <= memory
        self._stretch = len(tables) if fits else math.isqrt(max(1, len(tables) - 1)) + 1
        self._starts: list[Cells] = []
        self._steps: list[Steps] = []
        cells = start
        for first in range(0, len(tables), max(1, self._stretch)):
            self._starts.append(cells)
            cells, self._steps = self._run(cells, first)
        self.end = cells

    def _run(self, cells: Cells, first: int) -> tuple[Cells, list[Steps]]:
        steps = []
        for choices in self._tables[first : first + self._stretch]:
            if self._over():
                raise OutOfTime
            cells, back = step(cells, choices, self._grid)
            steps.append(back)
        return cells, steps

    def walk(self, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Go back from final states.

        Parameters
        ----------
        ends : int64 array [n]
            Positions in :attr:`end`.

        Returns
        -------
        options : int64 array [n, tables]
            Global option indices.
        starts : int64 array [n]
            Positions in the start state.
        """
        options = np.empty((len(ends), len(self._tables)), dtype=np.int64)
        at = ends
        for number in reversed(range(len(self._starts))):
            first = number * self._stretch
            last = number == len(self._starts) - 1
            steps = self._steps if last else self._run(self._starts[number], first)[1]
            for offset in reversed(range(len(steps))):
                back = steps[offset]
                options[:, first + offset] = self._tables[first + offset].option[back.choice[at]]
                at = back.previous[at].astype(np.int64)
        return options, at
