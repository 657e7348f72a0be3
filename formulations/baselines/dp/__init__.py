"""The published dynamic-programming baseline: choose options by memory bins, place greedily.

It minimises the *sum* of costs under the *summed* budgets of two memories, each cut into bins; a
greedy partitioner then places every proposal on ranks, and the best rating wins. Published by
TorchEasyRec (``tzrec/utils/plan_util.py``, PR 508), after TorchRec's proposer for one memory.

What it cannot see: that memory sits on ranks, that a budget may be met exactly (its comparison is
strict), fusion groups, and every plan whose cell a cheaper partial plan took.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from formulations.baselines.dp.programme import (
    OPTIONS,
    DPSettings,
    Problem,
    Programme,
    Select,
    make_axes,
    make_grid,
    make_problem,
    read_settings,
)
from formulations.baselines.dp.transition import Cells, Grid
from formulations.baselines.partition.partitioner import Partitioner
from formulations.baselines.partition.proposals import Found, outcome_of, search
from formulations.clock import Clock, OutOfTime
from formulations.instance import Instance, IntArray, Objective
from formulations.result.outcome import Outcome, StoppedBy, why_stopped
from formulations.settings import OwnSettings, Settings

#: Factors on the bins when refining: coarse first, then past the published number.
_FIRST_FACTOR = 1 / 8


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Run the dynamic programme and place what it proposes.

    Options (``settings.options``):

    - ``variant``: ``merged`` (default: 100 × 25 bins per device, float32, one proposal per bin of
      the first axis) or ``first`` (100 × 50, at most 1,024 on an axis, float64, one proposal per
      cell).
    - ``hbm_bins_per_device``, ``ddr_bins_per_device``: other bins; ``mem_bins_per_device`` is the
      original's old name for the first and wins over it. ``axis_cap``: most bins on an axis.
    - ``axes``: the resources of the two axes, ``("hbm", "ddr")`` by default.
    - ``fusion_aware``: one level per fusion group inside the dynamic programme (ours); it runs on
      an eighth of the bins first.
    - ``select``: ``best`` (default: all proposals are placed and rated, as TorchRec's planner
      does) or ``cheapest`` (by increasing sum of costs, the first that can be placed).
    - ``rank_by``: the objective that rates placed proposals; the instance's by default.
    - ``refine``: from an eighth of the bins, doubled until time or memory runs out; the best of
      all is kept (with ``select`` ``best`` only).
    - ``sort_by``: order in which the partitioner places tables, ``storage`` or ``perf``.
    - ``memory_limit_mb``: 1,024 by default; bins are coarsened to stay below it.

    Raises
    ------
    UnsupportedInstance
        When the instance limits a resource that is no axis, or has too many fusion levels.
    """
    chosen = read_settings(instance, OwnSettings("dp", settings.options, OPTIONS))
    partitioner = Partitioner(replace(instance, objective=chosen.rank_by), chosen.sort_by)
    axes = make_axes(instance, partitioner.facts, chosen.axes)
    problem = make_problem(instance, partitioner.facts, axes, chosen)
    found = Found(tells=chosen.rank_by == instance.objective)
    grids: list[Grid] = []
    if all(len(o) for o in problem.options):
        # The original's first proposal; with ``cheapest`` it is the last resort instead.
        cheapest = chosen.select == Select.CHEAPEST
        if not cheapest and _proposes_smallest(problem):
            search(partitioner, [problem.smallest], settings, clock, found=found)
        for grid in _grids(problem):
            if found.stopped_by != StoppedBy.EXHAUSTED:
                break
            grids.append(grid)
            _run(problem, grid, partitioner, settings, clock, found)
        nothing = found.placement is None and found.stopped_by == StoppedBy.EXHAUSTED
        if cheapest and nothing and _proposes_smallest(problem):
            search(partitioner, [problem.smallest], settings, clock, found=found)
    return outcome_of(
        instance,
        "dp",
        found,
        why_nothing="no proposal could be placed; that proves nothing: budgets met exactly and "
        "cells taken by cheaper partial plans are never proposed",
        variant=str(chosen.variant),
        bins=[[g.hbm, g.ddr] for g in grids],
        axes=list(chosen.axes),
        fusion_aware=chosen.fusion_aware,
        rank_by=str(chosen.rank_by),
    )


def _proposes_smallest(problem: Problem) -> bool:
    """The fusion-aware variant proposes the smallest options only where they mix no group."""
    options = problem.smallest[0]
    levels = zip(problem.instance.option_group[options], problem.instance.option_level[options],
                 strict=True)  # fmt: skip
    named = {pair for pair in levels if pair[0] >= 0}
    return not problem.chosen.fusion_aware or len(named) == len({group for group, _ in named})


def _grids(problem: Problem) -> Iterator[Grid]:
    if not problem.chosen.refine:
        if problem.chosen.fusion_aware:
            # Every combination of levels takes its time: coarse bins first, so that there is a
            # plan when the clock runs out.
            yield make_grid(problem, _FIRST_FACTOR)
        yield make_grid(problem)
        return
    factor, last = _FIRST_FACTOR, None
    while factor <= 1 or (make_grid(problem, factor) != last and not _a_bin_a_byte(problem, last)):
        grid = make_grid(problem, factor)
        if grid != last:
            yield grid
        factor, last = factor * 2, grid


def _a_bin_a_byte(problem: Problem, grid: Grid | None) -> bool:
    return grid is not None and all(
        bins >= axis.total for axis, bins in zip(problem.axes, (grid.hbm, grid.ddr), strict=True)
    )


def _run(
    problem: Problem,
    grid: Grid,
    partitioner: Partitioner,
    settings: Settings,
    clock: Clock,
    found: Found,
) -> None:
    """Run once on a grid; ``found`` records what the run finds and why it stops."""
    first = problem.chosen.select == Select.CHEAPEST
    try:
        programme = Programme(problem, grid, clock.over)
        hopeless = _Hopeless(partitioner, problem.chosen, found)
        search(partitioner, programme.proposals(hopeless), settings, clock, first, found)
    except OutOfTime:
        found.stopped_by = why_stopped(clock)


class _Hopeless:
    """Final states whose cost alone shows that they cannot beat the best plan found so far."""

    def __init__(self, partitioner: Partitioner, chosen: DPSettings, found: Found) -> None:
        facts = partitioner.facts
        self._found = found
        self._by_total = chosen.rank_by == Objective.TOTAL
        self._ranks = 1 if self._by_total else partitioner.instance.num_ranks
        all_placed = bool(np.array_equal(facts.cost, facts.placed_cost))
        self._usable = facts.exact and (self._by_total or all_placed)
        self._usable = self._usable and bool((facts.cost >= 0).all())

    def __call__(self, end: Cells, states: IntArray) -> np.ndarray:
        rating = self._found.rating
        if rating is None or not self._usable:
            return np.zeros(len(states), dtype=bool)
        # Sums of thousands of float32 are within 0.1 %; states that near are rated exactly.
        hopeless: np.ndarray = end.cost[states].astype(np.float64) * 0.999 >= rating * self._ranks
        self._found.proposed += int(hopeless.sum())
        self._found.skipped += int(hopeless.sum())
        return hopeless
