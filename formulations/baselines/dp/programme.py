"""The dynamic programme over an Instance: settings, axes, choices, grid, stages, and proposals in
order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from formulations.baselines.dp.stages import (
    Stage,
    Trellis,
    combinations_of_levels,
    fusion_components,
)
from formulations.baselines.dp.transition import Cells, Choices, Grid, origin
from formulations.baselines.partition.partitioner import SortBy
from formulations.errors import InstanceError, UnsupportedInstance
from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import OptionFacts
from formulations.settings import FLAG, OwnSettings, list_of, one_of, whole


class Variant(StrEnum):
    """The published versions (TorchEasyRec, ``tzrec/utils/plan_util.py``, PR 508)."""

    FIRST = "first"
    MERGED = "merged"


class Select(StrEnum):
    """Which of the proposals that can be placed is returned."""

    BEST = "best"
    CHEAPEST = "cheapest"


@dataclass(frozen=True)
class VariantFacts:
    """What differs between the variants.

    Attributes
    ----------
    bins : tuple of int
        Bins per device on the two axes.
    cap : int
        Most bins on an axis; 0 for no cap.
    dtype : type
        Floating-point type of costs and of totals in bin units.
    per_cell : bool
        A proposal for every reachable cell in decreasing memory, or one for every bin of the
        first axis in decreasing order.
    """

    bins: tuple[int, int]
    cap: int
    dtype: type[np.floating]
    per_cell: bool


VARIANTS = {
    Variant.FIRST: VariantFacts((100, 50), 1024, np.float64, True),
    Variant.MERGED: VariantFacts((100, 25), 0, np.float32, False),
}

OPTIONS = {
    "variant": one_of(Variant), "hbm_bins_per_device": whole(), "ddr_bins_per_device": whole(),
    "mem_bins_per_device": whole(), "axes": list_of(), "axis_cap": whole(0), "fusion_aware": FLAG,
    "select": one_of(Select), "rank_by": one_of(Objective), "sort_by": one_of(SortBy),
    "refine": FLAG, "memory_limit_mb": whole(),
}  # fmt: skip


@dataclass(frozen=True)
class DPSettings:
    """The caller's options for ``dp``; see :func:`formulations.baselines.dp.solve`."""

    variant: Variant
    bins: tuple[int, int]
    cap: int
    axes: tuple[str, ...]
    fusion_aware: bool
    select: Select
    rank_by: Objective
    sort_by: SortBy
    refine: bool
    memory_limit: int

    @property
    def facts(self) -> VariantFacts:
        """What the variant fixes."""
        return VARIANTS[self.variant]


def read_settings(instance: Instance, given: OwnSettings) -> DPSettings:
    """Fill in the options that the caller leaves out.

    Raises
    ------
    InstanceError
        For a pair of values that contradict each other.
    """
    variant = Variant(given.choice("variant", Variant.MERGED))
    select, refine = Select(given.choice("select", Select.BEST)), given.flag("refine", False)
    if refine and select == Select.CHEAPEST:
        raise InstanceError("dp: option 'refine' goes with select 'best', found 'cheapest'")
    published = VARIANTS[variant]
    # The original's old name for the first axis wins over its new one.
    hbm = "mem_bins_per_device" if given.has("mem_bins_per_device") else "hbm_bins_per_device"
    return DPSettings(
        variant=variant,
        bins=(
            given.integer(hbm, published.bins[0]),
            given.integer("ddr_bins_per_device", published.bins[1]),
        ),
        cap=given.integer("axis_cap", published.cap),
        axes=given.names("axes", ("hbm", "ddr")),
        fusion_aware=given.flag("fusion_aware", False),
        select=select,
        rank_by=Objective(given.choice("rank_by", instance.objective)),
        sort_by=SortBy(given.choice("sort_by", SortBy.STORAGE)),
        refine=refine,
        memory_limit=given.integer("memory_limit_mb", 1024) * 2**20,
    )


_ELSEWHERE = "cpsat, mip and scale cover every shape"
_BATCH = 256
#: Working bytes of a cell (dense and sparse arrays of one step), and of a remembered state.
_CELL_BYTES, _STATE_BYTES = 100, 37


@dataclass(frozen=True, eq=False)
class Axis:
    """One budget.

    Attributes
    ----------
    total : int
        Σ of the capacities of all places: the budget.
    largest : int
        The most that one shard may use; options with a larger shard are dropped.
    use, peak : int64 array [options]
        Σ over an option's shards; its largest shard.
    """

    total: int
    largest: int
    use: IntArray
    peak: IntArray

    def bins(self, wanted: int, cap: int) -> int:
        """Bins on this axis; an axis without a budget has a single one."""
        if self.total == 0:
            return 1
        return max(1, min(wanted, cap) if cap else wanted)

    def in_bins(self, bins: int, dtype: type[np.floating]) -> NDArray[np.floating]:
        """Every option's use as a number of bins, array [options]."""
        if self.total == 0:
            return np.zeros(len(self.use), dtype=dtype)
        return (self.use / (self.total / bins)).astype(dtype)

    def fits(self) -> NDArray[np.bool_]:
        """Options with no shard too large for every place, bool array [options]."""
        return self.peak <= self.largest


def make_axes(instance: Instance, facts: OptionFacts, names: Sequence[str]) -> tuple[Axis, Axis]:
    """The two budgets that the dynamic programme knows.

    The second axis is host memory, which ranks of one machine share: given per rank, one shard is
    still compared with its machine's sum (as published). Resources ``NAME@…`` limit one memory at
    different moments; its axis takes an option's largest use at any moment, and the least capacity.
    An option that needs a resource with no capacity is dropped; the original has no rule for such
    options, because its enumerator makes none.

    Raises
    ------
    UnsupportedInstance
        For names that are not resources, or a resource that is no axis.
    """
    known = [r.name for r in instance.resources]
    if not 1 <= len(names) <= 2 or len(set(names)) != len(names):
        raise UnsupportedInstance(f"dp has one or two axes, found {list(names)}")
    extra = [n for n in known if n not in names and n.partition("@")[0] not in names]
    if extra:
        raise UnsupportedInstance(
            f"dp knows the axes {', '.join(names)}, and this instance also limits "
            f"{', '.join(extra)}: name its axes with the option 'axes' (two at most; "
            f"{_ELSEWHERE})"
        )
    first, second = [*names, ""][:2]
    return _axis(instance, facts, known, first, False), _axis(instance, facts, known, second, True)


def _axis(instance: Instance, facts: OptionFacts, known: list[str], name: str, host: bool) -> Axis:
    indices = [i for i, n in enumerate(known) if name and name in (n, n.partition("@")[0])]
    if not indices:
        nothing = np.zeros(instance.num_options, dtype=np.int64)
        return Axis(0, 0, nothing, nothing)
    capacity = np.min([instance.resources[i].capacity for i in indices], axis=0)
    pools = capacity
    if host and instance.resources[indices[0]].scope == Scope.RANK:
        pools = np.zeros(len(instance.machines), dtype=np.int64)
        np.add.at(pools, instance.machine_of, capacity)
    return Axis(
        total=int(capacity.sum()),
        largest=int(pools.max(initial=0)),
        use=facts.use[:, indices].max(axis=1),
        peak=facts.peak[:, indices].max(axis=1),
    )


@dataclass(frozen=True, eq=False)
class Problem:
    """What the dynamic programme reads of an instance.

    Attributes
    ----------
    instance : Instance
    facts : OptionFacts
    axes : tuple of Axis
    chosen : DPSettings
    tables : list of int
        In the order of their smallest option, as the original meets them.
    options : list [tables of the instance] of int64 array
        Allowed options by increasing total memory, including those that fit nowhere.
    """

    instance: Instance
    facts: OptionFacts
    axes: tuple[Axis, Axis]
    chosen: DPSettings
    tables: list[int]
    options: list[IntArray]

    @property
    def smallest(self) -> IntArray:
        """The first proposal: every table's smallest option, int64 array [1, tables]."""
        return np.asarray([[o[0] for o in self.options]], dtype=np.int64).reshape(
            1, self.instance.num_tables
        )


def make_problem(
    instance: Instance, facts: OptionFacts, axes: tuple[Axis, Axis], chosen: DPSettings
) -> Problem:
    """Sort options by total memory (ties: instance order), and tables by their first option."""
    memory = axes[0].use + axes[1].use
    order = np.argsort(memory, kind="stable")
    order = order[instance.allowed[order]]
    by_table = order[np.argsort(instance.table_of[order], kind="stable")]
    ends = np.searchsorted(instance.table_of[by_table], np.arange(instance.num_tables + 1))
    options = [by_table[ends[t] : ends[t + 1]] for t in range(instance.num_tables)]
    met = list(dict.fromkeys(instance.table_of[order].tolist()))
    return Problem(instance, facts, axes, chosen, met, options)


def choices_of(problem: Problem, grid: Grid) -> dict[int, Choices]:
    """Every table's options in bin units, without those that fit at no place."""
    dtype = problem.chosen.facts.dtype
    hbm_axis, ddr_axis = problem.axes
    hbm, ddr = hbm_axis.in_bins(grid.hbm, dtype), ddr_axis.in_bins(grid.ddr, dtype)
    cost = problem.facts.cost.astype(dtype)
    fits = hbm_axis.fits() & ddr_axis.fits()
    result = {}
    for table in problem.tables:
        options = problem.options[table]
        options = options[fits[options]]
        result[table] = Choices(options, hbm[options], ddr[options], cost[options])
    return result


def make_grid(problem: Problem, factor: float = 1.0) -> Grid:
    """Bins per device × ranks × ``factor``, under the variant's cap and the memory limit."""
    chosen, ranks = problem.chosen, problem.instance.num_ranks
    bins = [
        axis.bins(max(1, round(wanted * ranks * factor)), chosen.cap)
        for axis, wanted in zip(problem.axes, chosen.bins, strict=True)
    ]
    most = most_cells(chosen.memory_limit, len(problem.tables))
    if bins[0] * bins[1] > most:
        scale = (most / (bins[0] * bins[1])) ** 0.5
        bins = [max(1, int(b * scale)) for b in bins]
    return Grid(bins[0], bins[1])


def most_cells(memory: int, tables: int) -> int:
    """Cells for which one step and √tables remembered states stay under ``memory`` bytes."""
    a_cell = max(_CELL_BYTES, _STATE_BYTES * (tables**0.5 + 1))
    return max(1, int(memory / 2 / a_cell))


class Programme:
    """The dynamic programme of a problem on a grid, run to its end.

    Raises
    ------
    OutOfTime
        When the clock runs out first.
    UnsupportedInstance
        When fusion groups have too many combinations of levels.
    """

    def __init__(self, problem: Problem, grid: Grid, over: Callable[[], bool]) -> None:
        self._problem, self.grid = problem, grid
        choices = choices_of(problem, grid)
        components: list[list[int]] = []
        if problem.chosen.fusion_aware:
            components = fusion_components(problem.instance, problem.tables)
        tied = {t for component in components for t in component}
        free = [t for t in problem.tables if t not in tied]
        together = [(free, [[choices[t] for t in free]])] if free else []
        for tables in components:
            together.append((tables, combinations_of_levels(problem.instance, tables, choices)))
        self._stages: list[Stage] = []
        cells, memory = origin(problem.chosen.facts.dtype), problem.chosen.memory_limit // 2
        for tables, combinations in together:
            run = partial(self._run, cells, memory, over)
            self._stages.append(Stage(tables, combinations, run, grid))
            cells = self._stages[-1].end
        self.end: Cells = cells

    def _run(
        self, start: Cells, memory: int, over: Callable[[], bool], choices: Sequence[Choices]
    ) -> Trellis:
        return Trellis(start, choices, self.grid, memory, over)

    def order(self) -> IntArray:
        """Final states in the order in which the variant proposes them.

        As first written: every cell by decreasing total memory (ties: decreasing cell). As
        merged: the cheapest cell of every bin of the first axis, decreasing.
        """
        end, axes = self.end, self._problem.axes
        if self._problem.chosen.facts.per_cell:
            memory = end.hbm * (axes[0].total / self.grid.hbm)
            memory = memory + end.ddr * (axes[1].total / self.grid.ddr)
            order = np.lexsort((-end.cell, -memory))
        else:
            first_axis = end.cell // self.grid.ddr
            by_bin = np.lexsort((end.cost, first_axis))
            starts = np.flatnonzero(np.diff(first_axis[by_bin], prepend=-1))
            order = by_bin[starts][::-1]
        if self._problem.chosen.select == Select.CHEAPEST:
            order = order[np.argsort(end.cost[order], kind="stable")]
        return order

    def proposals(self, hopeless: Callable[[Cells, IntArray], np.ndarray]) -> Iterator[IntArray]:
        """Proposals in order, int64 arrays [n, tables of the instance].

        Parameters
        ----------
        hopeless : callable
            Returns which of the given final states need not be proposed any more.
        """
        order = self.order()
        for first in range(0, len(order), _BATCH):
            ends = order[first : first + _BATCH]
            ends = ends[~hopeless(self.end, ends)]
            if len(ends):
                yield self.walk(ends)

    def walk(self, ends: IntArray) -> IntArray:
        """Options of every table for final states, int64 array [n, tables of the instance]."""
        result = np.empty((len(ends), self._problem.instance.num_tables), dtype=np.int64)
        for stage in reversed(self._stages):
            options, ends = stage.walk(ends)
            result[:, stage.tables] = options
        return result
