"""One table's step of the dynamic programme, vectorised over all reachable cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.instance import IntArray

FloatArray = NDArray[np.floating]

#: Candidates processed together.
_CHUNK = 65_536
#: Up to this many candidates of a step are kept for its second pass; otherwise it recomputes them.
_KEPT = 1_000_000


@dataclass(frozen=True, eq=False)
class Choices:
    """One table's options in bin units, infeasible ones already dropped.

    Attributes
    ----------
    option : int64 array [n]
        Global option indices, in the order in which ties are broken.
    hbm, ddr, cost : float arrays [n]
    """

    option: IntArray
    hbm: FloatArray
    ddr: FloatArray
    cost: FloatArray


@dataclass(frozen=True, eq=False)
class Cells:
    """Reachable cells: one state each, the cheapest way found to get there.

    Attributes
    ----------
    cell : int64 array [k]
        hbm bin × ddr bins + ddr bin, increasing.
    cost, hbm, ddr : float arrays [k]
        Cost and *untruncated* totals in bin units: only the cell is rounded.
    """

    cell: IntArray
    cost: FloatArray
    hbm: FloatArray
    ddr: FloatArray

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def values(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Cost and totals."""
        return self.cost, self.hbm, self.ddr


@dataclass(frozen=True, eq=False)
class Steps:
    """Where each state came from.

    Attributes
    ----------
    choice : int array [k]
        Position in the table's :class:`Choices`.
    previous : int32 array [k]
        State before this table.
    """

    choice: NDArray[np.integer]
    previous: NDArray[np.int32]


@dataclass(frozen=True)
class Grid:
    """Bins on the two axes. A total is inside when it is *strictly* below the number of bins."""

    hbm: int
    ddr: int

    @property
    def cells(self) -> int:
        """Cells in all."""
        return self.hbm * self.ddr


def origin(dtype: type[np.floating]) -> Cells:
    """The state before the first table."""
    zero = np.zeros(1, dtype=dtype)
    return Cells(np.zeros(1, dtype=np.int64), zero, zero, zero)


def step(cells: Cells, choices: Choices, grid: Grid) -> tuple[Cells, Steps]:
    """Add one table: the cheapest state of every reachable cell.

    Of equal costs, the earliest state wins, then the earliest choice: the order of a plain loop
    over states and, inside it, choices. There are two passes, over few candidates at a time to keep
    memory at a few arrays of ``k``: the first finds the lowest cost of every cell, the second the
    earliest candidate that has it.

    Returns
    -------
    cells : Cells
    steps : Steps
    """
    number = len(choices.option)
    base, size = _window(cells, choices, grid)
    few = len(cells) * number <= _KEPT
    candidates = list(_candidates(cells, choices, grid)) if few else None
    lowest = np.full(size, np.inf, dtype=cells.cost.dtype)
    for inside, taken, target in candidates or _candidates(cells, choices, grid):
        np.minimum.at(lowest, target - base, cells.cost[inside] + choices.cost[taken])
    never = len(cells) * number
    earliest = np.full(size, never, dtype=np.int64)
    for inside, taken, target in candidates or _candidates(cells, choices, grid):
        hit = cells.cost[inside] + choices.cost[taken] == lowest[target - base]
        which = taken[hit] if isinstance(taken, np.ndarray) else taken
        np.minimum.at(earliest, target[hit] - base, inside[hit] * number + which)
    reached = np.flatnonzero(earliest < never)
    previous, choice = np.divmod(earliest[reached], max(1, number))
    after = Cells(
        cell=reached + base,
        cost=lowest[reached],
        hbm=cells.hbm[previous] + choices.hbm[choice],
        ddr=cells.ddr[previous] + choices.ddr[choice],
    )
    small = np.uint8 if number < 256 else np.int32
    return after, Steps(choice.astype(small), previous.astype(np.int32))


def _window(cells: Cells, choices: Choices, grid: Grid) -> tuple[int, int]:
    """First cell and number of cells of the rows of the grid that this step can reach."""
    if not len(cells) or not len(choices.option):
        return 0, 0
    least = int(cells.hbm.min() + choices.hbm.min())
    most = min(grid.hbm - 1, int(cells.hbm.max() + choices.hbm.max()))
    return least * grid.ddr, max(0, most - least + 1) * grid.ddr


def _candidates(
    cells: Cells, choices: Choices, grid: Grid
) -> Iterator[tuple[IntArray, IntArray | np.int64, IntArray]]:
    """States, choices (one, or one per state) and the cells that they lead to, inside the grid.

    Few states are combined with many choices at a time, many states with one choice. The arrays are
    then long enough to be fast, and if possible short enough to stay in the processor's cache.
    """
    together = max(1, min(_CHUNK // max(1, len(cells)), len(choices.option)))
    if together == 1:
        for taken in range(len(choices.option)):
            hbm, ddr = cells.hbm + choices.hbm[taken], cells.ddr + choices.ddr[taken]
            inside, target = _inside(hbm, ddr, grid)
            yield inside, np.int64(taken), target
        return
    states = np.tile(np.arange(len(cells)), together)
    for first in range(0, len(choices.option), together):
        several = np.arange(first, min(first + together, len(choices.option)))
        hbm = (cells.hbm + choices.hbm[several, None]).ravel()
        ddr = (cells.ddr + choices.ddr[several, None]).ravel()
        inside, target = _inside(hbm, ddr, grid)
        yield states[inside], np.repeat(several, len(cells))[inside], target


def _inside(hbm: FloatArray, ddr: FloatArray, grid: Grid) -> tuple[IntArray, IntArray]:
    """Positions that stay inside the grid, and the cell of each."""
    inside = np.flatnonzero((hbm < grid.hbm) & (ddr < grid.ddr))
    if len(inside) == len(hbm):
        return inside, hbm.astype(np.int64) * grid.ddr + ddr.astype(np.int64)
    return inside, hbm[inside].astype(np.int64) * grid.ddr + ddr[inside].astype(np.int64)
