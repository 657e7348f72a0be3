"""Stages of the dynamic programme: free tables one by one, fused tables level by level, all
remembered well enough to walk back from any final cell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from formulations.baselines.dp.transition import Cells, Choices, Grid, Steps, step
from formulations.clock import OutOfTime
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, IntArray

#: Most combinations of levels tried for tables tied together by fusion groups.
MAX_COMBINATIONS = 4096
#: Bytes per state of a remembered step.
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
        Called before every table; True ends the run.

    Raises
    ------
    OutOfTime
        When ``over`` returns True.
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


class Stage:
    """Some tables of the dynamic programme: one run for every combination of their levels.

    Every combination starts from the same states; the cheapest final state of a cell wins (ties:
    the earlier combination). Going back repeats the run of a winning one, if there are several.

    Parameters
    ----------
    tables : list of int
    combinations : list of list of Choices
        A single one if the tables' choices do not depend on each other.
    run : callable
        Builds a Trellis for given choices.
    grid : Grid

    Attributes
    ----------
    end : Cells
        States after the tables.
    """

    def __init__(
        self,
        tables: list[int],
        combinations: list[list[Choices]],
        run: Callable[[list[Choices]], Trellis],
        grid: Grid,
    ) -> None:
        self.tables, self._combinations, self._run = tables, combinations, run
        self._only = run(combinations[0]) if len(combinations) == 1 else None
        if self._only is not None:
            self.end = self._only.end
            return
        shape = np.full(grid.cells, np.inf)
        winner = np.full(grid.cells, -1, dtype=np.int32)
        best = Cells(np.arange(grid.cells), shape, np.zeros_like(shape), np.zeros_like(shape))
        for index, choices in enumerate(combinations):
            end = run(choices).end
            if not index:
                best = Cells(best.cell, *(v.astype(end.cost.dtype) for v in best.values))
            better = end.cost < best.cost[end.cell]
            cell = end.cell[better]
            winner[cell] = index
            for old, new in zip(best.values, end.values, strict=True):
                old[cell] = new[better]
        reached = np.flatnonzero(winner >= 0)
        self.end = Cells(reached, *(values[reached] for values in best.values))
        self._winner = winner[reached]

    def walk(self, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Options [n, tables] and start positions [n] of final states; see :meth:`Trellis.walk`."""
        if self._only is not None:
            return self._only.walk(ends)
        options = np.empty((len(ends), len(self.tables)), dtype=np.int64)
        starts = np.empty(len(ends), dtype=np.int64)
        for index in np.unique(self._winner[ends]).tolist():
            chosen = np.flatnonzero(self._winner[ends] == index)
            trellis = self._run(self._combinations[index])
            at = np.searchsorted(trellis.end.cell, self.end.cell[ends[chosen]])
            options[chosen], starts[chosen] = trellis.walk(at)
        return options, starts


def fusion_components(instance: Instance, tables: Sequence[int]) -> list[list[int]]:
    """Tables tied together by the groups of their allowed options.

    Free tables are left out, and so are tables alone in their groups, which are as good as free.
    Components and their tables keep the order of ``tables``.
    """
    from networkx.utils import UnionFind

    groups_of = {t: _groups(instance, t) for t in tables}
    together: UnionFind = UnionFind()
    for groups in groups_of.values():
        together.union(*groups)
    components: dict[int, list[int]] = {}
    for table in tables:
        if groups_of[table]:
            components.setdefault(together[groups_of[table][0]], []).append(table)
    return [tied for tied in components.values() if len(tied) > 1]


def combinations_of_levels(
    instance: Instance, tables: Sequence[int], choices: dict[int, Choices]
) -> list[list[Choices]]:
    """The tables' remaining choices for every combination of levels of their groups.

    Raises
    ------
    UnsupportedInstance
        Above :data:`MAX_COMBINATIONS`.
    """
    levels: dict[int, list[int]] = {}
    for table in tables:
        options = choices[table].option
        for option in options[instance.option_group[options] >= 0].tolist():
            group_levels = levels.setdefault(int(instance.option_group[option]), [])
            if int(instance.option_level[option]) not in group_levels:
                group_levels.append(int(instance.option_level[option]))
    count = math.prod(map(len, levels.values()))
    if count > MAX_COMBINATIONS:
        raise UnsupportedInstance(
            f"the fusion-aware dp tries every combination of levels of groups that share tables, "
            f"and {len(levels)} groups have {count} (at most {MAX_COMBINATIONS}): cpsat, mip and "
            "scale cover this"
        )
    result = []
    for combination in itertools.product(*(sorted(v) for v in levels.values())):
        level_of = np.full(len(instance.fusion_groups) + 1, -1, dtype=np.int64)
        level_of[list(levels)] = combination
        left = [_at_levels(instance, choices[t], level_of) for t in tables]
        if all(len(c.option) for c in left):
            result.append(left)
    return result


def _groups(instance: Instance, table: int) -> list[int]:
    options = np.asarray(instance.options_of(table))
    groups = instance.option_group[options[instance.allowed[options]]]
    return np.unique(groups[groups >= 0]).tolist()


def _at_levels(instance: Instance, choices: Choices, level_of: IntArray) -> Choices:
    group = instance.option_group[choices.option]
    keep = (group < 0) | (instance.option_level[choices.option] == level_of[group])
    return Choices(choices.option[keep], choices.hbm[keep], choices.ddr[keep], choices.cost[keep])
