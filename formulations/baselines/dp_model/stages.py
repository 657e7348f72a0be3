"""Stages of the dynamic programme: free tables one by one, fused tables level by level."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from formulations.baselines.dp_model.transition import Cells, Choices, Grid, step
from formulations.baselines.dp_model.trellis import Trellis
from formulations.clock import OutOfTime
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, IntArray

#: Combinations of levels that are tried for tables tied together by fusion groups.
MAX_COMBINATIONS = 4096


@dataclass(frozen=True)
class Limits:
    """What a stage may spend: bytes for remembered steps, and a clock to ask."""

    memory: int
    over: Callable[[], bool]


class Stage(Protocol):
    """Some tables of the dynamic programme.

    Attributes
    ----------
    tables : list of int
    end : Cells
        States after them.
    """

    tables: list[int]
    end: Cells

    def walk(self, ends: IntArray) -> tuple[IntArray, IntArray]:
        """Options [n, tables] and start positions [n] of final states; see ``Trellis.walk``."""
        ...


class PlainStage:
    """Tables whose choices do not depend on each other."""

    def __init__(
        self,
        start: Cells,
        tables: list[int],
        choices: Sequence[Choices],
        grid: Grid,
        limits: Limits,
    ) -> None:
        self.tables = tables
        self._trellis = Trellis(start, choices, grid, limits.memory, limits.over)
        self.end = self._trellis.end

    def walk(self, ends: IntArray) -> tuple[IntArray, IntArray]:
        """See :class:`Stage`."""
        return self._trellis.walk(ends)


class FusedStage:
    """Tables tied together by fusion groups: one run for every combination of levels.

    Every combination starts from the same states and keeps only its final ones; the cheapest of a
    cell wins (ties: the earlier combination). Going back repeats the run of a winning combination.
    """

    def __init__(
        self,
        start: Cells,
        tables: list[int],
        combinations: Iterable[list[Choices]],
        grid: Grid,
        limits: Limits,
    ) -> None:
        self.tables = tables
        self._start, self._grid, self._limits = start, grid, limits
        self._combinations = list(combinations)
        cost = np.full(grid.cells, np.inf, dtype=start.cost.dtype)
        hbm, ddr = np.zeros_like(cost), np.zeros_like(cost)
        winner = np.full(grid.cells, -1, dtype=np.int32)
        for index, choices in enumerate(self._combinations):
            end = self._forward(choices)
            better = end.cost < cost[end.cell]
            cell = end.cell[better]
            cost[cell], winner[cell] = end.cost[better], index
            hbm[cell], ddr[cell] = end.hbm[better], end.ddr[better]
        reached = np.flatnonzero(winner >= 0)
        self.end = Cells(reached, cost[reached], hbm[reached], ddr[reached])
        self._winner = winner[reached]

    def _forward(self, tables: list[Choices]) -> Cells:
        cells = self._start
        for choices in tables:
            if self._limits.over():
                raise OutOfTime
            cells, _ = step(cells, choices, self._grid)
        return cells

    def walk(self, ends: IntArray) -> tuple[IntArray, IntArray]:
        """See :class:`Stage`."""
        options = np.empty((len(ends), len(self.tables)), dtype=np.int64)
        starts = np.empty(len(ends), dtype=np.int64)
        for index in np.unique(self._winner[ends]).tolist():
            chosen = np.flatnonzero(self._winner[ends] == index)
            trellis = Trellis(
                self._start,
                self._combinations[index],
                self._grid,
                self._limits.memory,
                self._limits.over,
            )
            at = np.searchsorted(trellis.end.cell, self.end.cell[ends[chosen]])
            options[chosen], starts[chosen] = trellis.walk(at)
        return options, starts


def fusion_components(instance: Instance, tables: Sequence[int]) -> list[list[int]]:
    """Tables tied together by the groups of their allowed options.

    Free tables are left out, and so are tables alone in their groups, which are as good as free.
    Components and their tables keep the order of ``tables``.
    """
    parent: dict[int, int] = {}

    def root(group: int) -> int:
        while parent.setdefault(group, group) != group:
            group = parent[group]
        return group

    groups_of = {t: _groups(instance, t) for t in tables}
    for groups in groups_of.values():
        for other in groups[1:]:
            parent[root(other)] = root(groups[0])
    components: dict[int, list[int]] = {}
    for table in tables:
        if groups_of[table]:
            components.setdefault(root(groups_of[table][0]), []).append(table)
    return [tied for tied in components.values() if len(tied) > 1]


def combinations_of_levels(
    instance: Instance, tables: Sequence[int], choices: dict[int, Choices]
) -> list[list[Choices]]:
    """What is left of the tables' choices at every combination of levels of their groups.

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
