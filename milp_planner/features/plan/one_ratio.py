"""Cached tables that meet in one of TorchRec's kernels have one ratio, because that is what runs.

The Instance says so of tables that certainly meet. Which others meet depends on the plan. So it is
solved first, which bounds every plan. Where tables of a kernel then meet with several ratios, they
get one, where they lie, and it is solved again: so that such pairs have one ratio wherever they
meet, at last so that all tables of their kernels have. What comes out is a plan of the first
Instance, within its bound, and what runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from formulations import Instance, Outcome, Placement
from formulations.fusion import respreads
from formulations.instance import Resource, Scope
from formulations.priced import Priced
from formulations.result.check import check
from formulations.result.outcome import Status, StoppedBy, TracePoint, found
from formulations.settings import Settings
from milp_planner.drawing.units import NAMED, listed
from milp_planner.plans.compile import Compiled
from milp_planner.pricing.shared_caches import kernel_of

FIRST = 0.6
"""Share of the time, or of the work, for the first solve."""
ROUNDS = 3
"""Further solves, of which the last restricts kernels."""

Run = Callable[[Instance, Settings], Outcome]
Sets = dict[int, list[set[int]]]
"""Tables that have one ratio, by kernel."""
Pairs = set[tuple[int, int, int]]
"""Kernels with two tables each."""


def as_it_runs(instance: Instance, caches: Caches, settings: Settings, run: Run) -> Outcome:
    """Solve, and again where tables that share a cache have several ratios.

    Parameters
    ----------
    instance : Instance
    caches : Caches
        Of its options.
    settings : Settings
    run : callable
        Solves an instance with the same options.

    Returns
    -------
    Outcome
        Of ``instance``; ``detail["one_ratio"]`` names tables whose ratio was changed or
        restricted. If no plan with one ratio was found, the plan is the first one, and ``export``
        says what runs instead.
    """
    kernels = _Kernels(instance, caches)
    if not kernels.may_clash():
        return run(instance, settings)
    outcome = _in_parts(instance, kernels, settings, run)
    whole = {"time_limit": settings.time_limit, "work_limit": settings.work_limit}
    return outcome.with_(settings={**outcome.settings, **whole})


def clashing(instance: Instance, caches: Caches, plan: Placement) -> list[str]:
    """Names of the tables that share a cache in a plan and have several ratios."""
    kernels = _Kernels(instance, caches)
    return kernels.names(kernels.clashes(plan))


def _in_parts(instance: Instance, kernels: _Kernels, settings: Settings, run: Run) -> Outcome:
    first = run(instance, _part(settings, FIRST))
    rest = _part(settings, 1 - FIRST)
    if first.placement is not None and (sets := kernels.clashes(first.placement)):
        return _restricted(instance, kernels, first, sets, rest, run)
    ended = first.status in (Status.OPTIMAL, Status.INFEASIBLE) or rest.stop.is_set()
    if ended or first.stopped_by == StoppedBy.GAP:
        return first
    if first.placement is not None:
        rest = replace(rest, hint=first.placement, prices=first.certificate or rest.prices)
    again = run(instance, rest)
    return again if again.placement is not None and not kernels.clashes(again.placement) else first


def _part(settings: Settings, share: float) -> Settings:
    """Settings for a share of the time or work, within what is left of the call."""
    time, work, left = settings.time_limit, settings.work_limit, settings.timed.left()
    return replace(
        settings,
        time_limit=None if time is None else min(share * time, left),
        work_limit=None if work is None else share * work,
    )


def _restricted(
    base: Instance, kernels: _Kernels, first: Outcome, sets: Sets, rest: Settings, run: Run
) -> Outcome:
    """The best plan found with one ratio wherever caches are shared, within the first bound."""
    before, pairs = first.placement, Pairs()
    assert before is not None
    plans, names = [*kernels.mended(base, before)], kernels.names(sets)
    for left in range(ROUNDS, 0, -1):
        if rest.stop.is_set():
            break
        every = {kernel: [set(kernels.tables(kernel))] for kernel in sets}
        pairs |= kernels.pairs(before)
        instance = kernels.grouped(base, every) if left == 1 else kernels.apart(base, pairs)
        near = chain(plans, respreads(instance, before))
        hint = next((plan for plan in near if check(instance, plan).feasible), None)
        part = replace(_part(rest, 1 / left), hint=hint, prices=None)
        found_again = run(instance, part).placement
        if found_again is None:
            continue
        before, clash = found_again, kernels.clashes(found_again)
        plans += kernels.mended(base, before)
        sets = {**sets, **clash}
        if not clash:
            break
    if not plans:
        return first
    best = min(plans, key=lambda plan: check(base, plan).objectives[base.objective.value])
    return _with(base, first, best, names)


def _with(instance: Instance, first: Outcome, best: Placement, names: list[str]) -> Outcome:
    """The first outcome with a plan that runs; its trace keeps bounds, and plans no better."""
    ended = {StoppedBy.PROOF: StoppedBy.EXHAUSTED, StoppedBy.GAP: StoppedBy.EXHAUSTED}
    outcome = found(
        instance, first.formulation, best, ended.get(first.stopped_by, first.stopped_by),
        first.bound, first.bound_source, certified_bound=first.certified_bound,
        certificate=first.certificate,
    )  # fmt: skip
    assert outcome.objective is not None
    least = outcome.objective
    trace = [
        replace(
            p, objective=None if p.objective is not None and p.objective < least else p.objective
        )
        for p in first.trace
    ]
    last = trace[-1].seconds if trace else 0.0
    trace.append(TracePoint(last, least, first.bound, "one ratio a cache"))
    note = (
        f"cached tables of one TorchRec kernel share a cache and have one ratio where they meet, "
        f"as they run: {listed(names, NAMED)}; the bound is of all plans, also of such that have "
        "several there"
    )
    return first.with_(
        placement=best, objective=least, objectives=outcome.objectives, status=outcome.status,
        stopped_by=outcome.stopped_by, trace=tuple(trace), goals=(), before_goals=None,
        note="; ".join(filter(None, (first.note, note))),
        detail={**first.detail, "one_ratio": names},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Caches:
    """Which options are cached tables of TorchRec's kernels.

    Attributes
    ----------
    kernel : int64 array [options]
        Kernel of each option that has a cache there, else −1.
    level : int64 array [options]
        Position of its ratio among all ratios.
    aside : bool array [blocks] or None
        Blocks that hold nothing of their table, such as one that pays for moving it.
    """

    kernel: NDArray[np.int64]
    level: NDArray[np.int64]
    aside: NDArray[np.bool_] | None = None

    @classmethod
    def named(cls, named: Sequence[tuple[str, Fraction] | None]) -> Caches:
        """Of the name of each option's kernel and its ratio there; None for one without."""
        kernels = sorted({each[0] for each in named if each is not None})
        ratios = sorted({each[1] for each in named if each is not None})
        kernel = [-1 if each is None else kernels.index(each[0]) for each in named]
        level = [0 if each is None else ratios.index(each[1]) for each in named]
        return cls(np.asarray(kernel, dtype=np.int64), np.asarray(level, dtype=np.int64))

    @classmethod
    def of(cls, compiled: Compiled) -> Caches:
        """Of the options of a compiled question."""
        model, owners = compiled.model, compiled.instance.table_of
        tables = [model.tables[int(owner)] for owner in owners]
        named = [
            (kernel_of(table, c.sharding, c.width, model.workload), c.ratio)
            if c.runtime == "torchrec" and c.mode == "CACHING" and model.workload.fusion != "free"
            else None
            for table, c in zip(tables, compiled.options.choices, strict=True)
        ]
        return cls.named(named)

    def priced(self, model: Priced) -> Caches:
        """Of the options with a price on moves."""
        aside = np.zeros(model.instance.num_blocks, dtype=bool)
        aside[model.instance.option_blocks[1:][model.price > 0] - 1] = True
        return Caches(self.kernel[model.origin], self.level[model.origin], aside)


class _Kernels:
    """The caches of an instance's options."""

    def __init__(self, instance: Instance, caches: Caches) -> None:
        self.instance, self.kernel, self.level = instance, caches.kernel, caches.level
        none = np.zeros(instance.num_blocks, dtype=bool)
        self.aside = none if caches.aside is None else caches.aside

    def tables(self, kernel: int) -> list[int]:
        """Tables with an option in a kernel."""
        owners = self.instance.table_of[self.kernel == kernel]
        return [int(table) for table in np.unique(owners)]

    def names(self, sets: Sets) -> list[str]:
        """Names of tables."""
        tables = sorted({t for groups in sets.values() for group in groups for t in group})
        return [self.instance.table_names[t] for t in tables]

    def may_clash(self) -> bool:
        """Whether a kernel has several tables, and their options several ratios."""
        kernels = np.unique(self.kernel[self.kernel >= 0])
        several = (len(np.unique(self.level[self.kernel == k])) > 1 for k in kernels)
        return any(
            many and len(self.tables(int(k))) > 1 for k, many in zip(kernels, several, strict=True)
        )

    def _met(self, plan: Placement) -> Iterator[tuple[int, list[int]]]:
        """Kernels with the tables that each has on one rank."""
        members: dict[tuple[int, int], list[int]] = defaultdict(list)
        for table, option in enumerate(plan.options.tolist()):
            blocks = zip(self.instance.blocks_of(option), plan.ranks[table], strict=True)
            for rank in {int(r) for b, ranks in blocks if not self.aside[b] for r in ranks}:
                if self.kernel[option] >= 0:
                    members[int(self.kernel[option]), rank].append(table)
        return ((kernel, tables) for (kernel, _), tables in members.items())

    def pairs(self, plan: Placement) -> Pairs:
        """Two tables that meet with two ratios."""
        level = self.level[plan.options]
        return {
            (kernel, a, b)
            for kernel, tables in self._met(plan)
            for a, b in combinations(tables, 2)
            if level[a] != level[b]
        }

    def clashes(self, plan: Placement) -> Sets:
        """Sets of tables that meet, one with the next, at several ratios."""
        sets: Sets = defaultdict(list)
        for kernel, tables in self._met(plan):
            apart = [s for s in sets[kernel] if not s & {*tables}]
            joined = set(tables).union(*(s for s in sets[kernel] if s & {*tables}))
            sets[kernel] = [*apart, joined]
        found = {
            kernel: [s for s in groups if len({self.level[plan.options[t]] for t in s}) > 1]
            for kernel, groups in sets.items()
        }
        return {kernel: groups for kernel, groups in found.items() if groups}

    def grouped(self, instance: Instance, sets: Sets) -> Instance:
        """The instance with each set, and the tables that it has in a group already, in one."""
        group, level = instance.option_group.copy(), instance.option_level.copy()
        names = list(instance.fusion_groups)
        for kernel, groups in sets.items():
            for tables in groups:
                mine = (self.kernel == kernel) & np.isin(instance.table_of, list(tables))
                known = np.unique(group[mine & (group >= 0)])
                mine |= (self.kernel == kernel) & np.isin(group, known)
                group[mine] = len(names)
                level[mine] = self.level[mine]
                names.append(f"cache {len(names)}")
        return replace(instance, option_group=group, option_level=level, fusion_groups=tuple(names))

    def apart(self, instance: Instance, pairs: Pairs) -> Instance:
        """The instance in which two tables have one ratio of a kernel wherever they meet.

        With levels l and m of 0 to n, a shard of one table takes l and n − l of two resources of
        its rank, a shard of the other n − m and m; each holds n. One of them alone fits; together
        l ≤ m and m ≤ l. (Two column shards of a table on one rank need not fit.)
        """
        most, resources, columns = int(self.level.max()), [*instance.resources], []
        kernel, level = (self._entries(instance, each) for each in (self.kernel, self.level))
        kernel = np.where(np.repeat(self.aside, np.diff(instance.block_shards)), -1, kernel)
        owner = self._entries(instance, instance.table_of)
        for name, a, b in sorted(pairs):
            one, other = ((kernel == name) & (owner == table) for table in (a, b))
            for ours in (level, most - level):
                columns.append(np.where(one, ours, 0) + np.where(other, most - ours, 0))
                full = np.full(instance.num_ranks, most, dtype=np.int64)
                resources.append(Resource(f"one ratio {len(columns)}", Scope.RANK, full))
        use = np.column_stack([instance.shard_use, *columns])
        return replace(instance, resources=tuple(resources), shard_use=use)

    def _entries(self, instance: Instance, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Values of options, for each of their shard entries."""
        of_block = np.repeat(instance.option_of, np.diff(instance.block_shards))
        return np.asarray(values[of_block], dtype=np.int64)

    def mended(self, instance: Instance, plan: Placement) -> Iterator[Placement]:
        """A plan itself if nothing clashes, else with one ratio for each set where it lies, those
        near what runs; only what the instance allows."""
        sets = self.clashes(plan)
        for near in respreads(self.grouped(instance, sets), plan):
            if check(instance, near).feasible and not self.clashes(near):
                yield near
