"""Cached tables that meet in one of TorchRec's kernels have one ratio, because that is what runs.

The Instance says so of tables that certainly meet. Which others meet depends on the plan: there
rules, which are resources of ranks, keep two tables from meeting at unlike ratios. If all rules are
few, they are part of the question from the start; else those that a plan broke are. Plans that run
keep all rules, so the bound and certificate of a question with some of them hold for what runs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain, permutations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from formulations import Instance, Outcome, Placement, registry
from formulations.fusion import respreads
from formulations.instance import Resource, Scope
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import Status, StoppedBy, with_plan
from formulations.runtime.timing import CallTime
from formulations.settings import Settings
from milp_planner.drawing.units import NAMED, listed
from milp_planner.plans.compile import RULE, Compiled
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing.shared_caches import Caches

FIRST = 0.6
"""Share of the time, or of the work, for the first solve, unless all rules are part of it."""
ROUNDS = 3
"""Further solves."""
FEW, MOST = 100, 500
"""Most rules from the start; and at last, beyond which tables of a kernel have one ratio."""

Run = Callable[[Instance, Settings], Outcome]
Sets = dict[int, list[set[int]]]
"""Tables that have one ratio, by kernel."""
Rules = set[tuple[int, int, int]]
"""A kernel and two tables: where they meet, the first has at most the ratio of the second."""


def as_it_runs(
    instance: Instance,
    caches: Caches,
    settings: Settings,
    formulation: str,
    run: Run,
    rules: bool = True,
) -> Outcome:
    """Solve, and again where tables that share a cache have several ratios.

    Parameters
    ----------
    instance : Instance
    caches : Caches
        Of its options.
    settings : Settings
    formulation : str
        One that proves nothing gets no rules: dp has no axis for them.
    run : callable
        Solves an instance with the same options.
    rules : bool
        Whether rules may become part of the question.

    Returns
    -------
    Outcome
        Of :func:`asked`. If no plan with one ratio was found, the plan has several, and ``export``
        says what runs instead.
    """
    kernels = _Kernels(instance, caches)
    if not kernels.may_clash():
        return run(instance, settings)
    timed = replace(settings, call=settings.call or CallTime(settings.time_limit))
    rules = rules and registry.get(formulation).proves != "nothing"
    outcome = _Rounds(kernels, timed, run, rules).outcome()
    whole = {"time_limit": settings.time_limit, "work_limit": settings.work_limit}
    return outcome.with_(settings={**outcome.settings, **whole})


class Question(Protocol):
    """An instance, and the caches of its options."""

    @property
    def instance(self) -> Instance: ...
    @property
    def caches(self) -> Caches: ...


def ruled(question: Question) -> Instance:
    """A question's instance with all rules, if they are few."""
    kernels = _Kernels(question.instance, question.caches)
    return kernels.apart(kernels.few()[0])


def asked(question: Question, detail: Mapping[str, object]) -> Instance:
    """What :func:`as_it_runs` answered: the instance with the rules in an outcome's detail."""
    if "one_ratio" not in detail:
        return question.instance
    kernels = _Kernels(question.instance, question.caches)
    return kernels.apart(kernels.named(detail["one_ratio"]))


def decoded(compiled: Compiled, outcome: Outcome) -> Plan:
    """The plan of an outcome of :func:`as_it_runs`."""
    return decode(compiled.options, asked(compiled, outcome.detail), outcome)


def clashing(instance: Instance, caches: Caches, plan: Placement) -> list[str]:
    """Names of the tables that share a cache in a plan and have several ratios."""
    kernels = _Kernels(instance, caches)
    return kernels.names(kernels.clashes(plan))


class _Rounds:
    """Solves with more and more rules, and the plans found that run."""

    def __init__(self, kernels: _Kernels, settings: Settings, run: Run, rules: bool) -> None:
        self._kernels, self._run, self._rest, self._adds = kernels, run, settings, rules
        self._rules, self._closed = kernels.few() if rules else (Rules(), False)
        if rules and not self._rules and settings.prices is not None:  # those it is about
            self._rules = kernels.named(_rules_of(settings.prices))
        self._plans, self._mixed = list[Placement](), Sets()
        self._last: tuple[Outcome, Rules] | None = None

    def outcome(self) -> Outcome:
        """The outcome with the highest bound, and the best plan that runs."""
        settings, new = self._rest, self._solved(1.0 if self._closed else FIRST)
        if new.placement is None and self._rules and not settings.stop.is_set():
            self._rules, self._rest = Rules(), settings  # then a plan that mixes ratios
            self._closed = self._adds = False
            new = self._solved(1.0)
        plan, ended = new.placement, (Status.OPTIMAL, Status.INFEASIBLE)
        for left in range(ROUNDS, 0, -1):
            clash = Sets() if plan is None else self._kernels.clashes(plan)
            self._mixed |= clash
            done = self._closed or new.status in ended or new.stopped_by == StoppedBy.GAP
            over = self._rest.stop.is_set() or not self._rest.timed.left()
            over = over or self._rest.work_limit == 0.0
            if plan is None or over or (done and not clash) or new.status == Status.INFEASIBLE:
                break
            more = self._rules | (self._kernels.broken(plan) if self._adds else Rules())
            if self._rules != more and len(more) <= MOST and left > 1:
                self._rules, clash = more, Sets()
                new = self._solved(1 / left)
            else:
                new = self._solved(1.0, clash)
            plan = new.placement or plan
        return self._told(new)

    def _solved(self, share: float, sets: Sets | None = None) -> Outcome:
        """Solve in a share of what is left; if kernels have one ratio, only its plan counts."""
        rest, kernels, instance = self._rest, self._kernels, self._kernels.apart(self._rules)
        if sets:
            every = {kernel: [set(kernels.tables(kernel))] for kernel in sets}
            instance = kernels.grouped(instance, every)
        time, work = rest.time_limit, rest.work_limit
        part = replace(
            rest,
            time_limit=None if time is None else share * min(time, rest.timed.left()),
            work_limit=None if work is None else share * work,
            hint=next((p for p in self._plans if check(instance, p).feasible), rest.hint),
        )
        new = self._run(instance, part)
        self._rest = replace(rest, work_limit=None if work is None else (1 - share) * work)
        if new.placement is None:
            return new
        self._plans = sorted([*kernels.mended(new.placement), *self._plans], key=self._cost)
        bound, known = new.proved_bound or 0, self._last and self._last[0].proved_bound
        if not sets and bound >= (known or 0):
            self._last = new, self._rules
            self._rest = replace(self._rest, prices=new.certificate or rest.prices)
        return new

    def _cost(self, plan: Placement) -> int:
        instance = self._kernels.instance
        return check(instance, plan).objectives[instance.objective.value]

    def _told(self, new: Outcome) -> Outcome:
        """The last outcome that bounds what runs, with the cheapest plan that does."""
        outcome, rules = self._last or (new, self._rules)
        clash = outcome.placement is not None and self._kernels.clashes(outcome.placement)
        if self._plans and (clash or self._cost(self._plans[0]) < outcome.to_beat):
            best, instance = self._plans[0], self._kernels.apart(rules)
            outcome = _with(instance, outcome, best, self._cost(best))
        if rules:
            told = self._kernels.told(rules)
            outcome = outcome.with_(detail={**outcome.detail, "one_ratio": told})
        if not self._mixed or not self._plans:
            return outcome
        note = (
            "cached tables of one TorchRec kernel share a cache and have one ratio where they "
            f"meet, as they run: {listed(self._kernels.names(self._mixed), NAMED)}"
        )
        return outcome.with_(note="; ".join(filter(None, (outcome.note, note))))


def _rules_of(certificate: Certificate) -> set[str]:
    """Names of the rules that a certificate uses."""
    rows = chain.from_iterable(certificate.vectors)
    return {row["of"] for row in rows if str(row.get("of")).startswith(RULE)}


def _with(instance: Instance, before: Outcome, best: Placement, least: int) -> Outcome:
    """An outcome with a plan that runs; its trace keeps bounds, and plans no better."""
    trace = [
        replace(p, objective=None) if p.objective is not None and p.objective < least else p
        for p in before.trace
    ]
    proved = before.stopped_by in (StoppedBy.PROOF, StoppedBy.GAP)
    stopped = StoppedBy.EXHAUSTED if proved else before.stopped_by
    before = before.with_(trace=tuple(trace), stopped_by=stopped, goals=(), before_goals=None)
    return with_plan(instance, before, best, least)


class _Kernels:
    """The caches of an instance's options."""

    def __init__(self, instance: Instance, caches: Caches) -> None:
        self.instance, self.kernel, self.level = instance, caches.kernel, caches.level
        none = np.zeros(instance.num_blocks, dtype=bool)
        self.aside, self._names = none if caches.aside is None else caches.aside, caches.names
        self._once = self._one_a_rank()

    def _one_a_rank(self) -> NDArray[np.bool_]:
        """Options that surely have at most one shard on a rank."""
        instance = self.instance
        many = (instance.block_count > 1) & ~instance.block_distinct
        blocks = np.where(many, 2, ~self.aside)
        shards = np.bincount(instance.option_of, blocks, instance.num_options)
        return np.asarray((self.kernel >= 0) & (shards == 1))

    def tables(self, kernel: int) -> list[int]:
        """Tables with an option in a kernel."""
        owners = self.instance.table_of[self.kernel == kernel]
        return [int(table) for table in np.unique(owners)]

    def names(self, sets: Sets) -> list[str]:
        """Names of tables."""
        tables = sorted({t for groups in sets.values() for group in groups for t in group})
        return [self.instance.table_names[t] for t in tables]

    def may_clash(self) -> bool:
        """Whether tables may meet at several ratios."""
        return any(map(self._open, self._kernels))

    @cached_property
    def _kernels(self) -> list[int]:
        return [int(kernel) for kernel in np.unique(self.kernel[self.kernel >= 0])]

    def _open(self, kernel: int) -> bool:
        """Whether a kernel's tables are several, with several ratios, and no one group."""
        mine = self.kernel == kernel
        groups, levels = (np.unique(of[mine]) for of in (self.instance.option_group, self.level))
        tied = len(groups) == 1 and groups[0] >= 0
        return not tied and len(levels) > 1 and len(self.tables(kernel)) > 1

    def _met(self, plan: Placement) -> Iterator[tuple[int, list[int]]]:
        """Kernels with the tables that each has on one rank."""
        members: dict[tuple[int, int], list[int]] = defaultdict(list)
        for table, option in enumerate(plan.options.tolist()):
            blocks = zip(self.instance.blocks_of(option), plan.ranks[table], strict=True)
            for rank in {int(r) for b, ranks in blocks if not self.aside[b] for r in ranks}:
                if self.kernel[option] >= 0:
                    members[int(self.kernel[option]), rank].append(table)
        return ((kernel, tables) for (kernel, _), tables in members.items())

    def few(self) -> tuple[Rules, bool]:
        """All rules if they are few, else none; and whether plans that keep them run."""
        rules = Rules()
        for kernel in filter(self._open, self._kernels):
            tables = self.tables(kernel)
            if len(tables) <= FEW:
                rules |= {(kernel, *pair) for pair in permutations(tables, 2)}
            rules = {rule for rule in rules if self._needed(*rule)}
            if len(tables) > FEW or len(rules) > FEW:
                return Rules(), False
        return rules, bool(self._once[self.kernel >= 0].all())

    def _needed(self, kernel: int, one: int, other: int) -> bool:
        """Whether the first table may have a higher ratio, and a rule can say so."""
        high, low = (self.level[self._options[kernel, table]] for table in (one, other))
        return bool(high.size and low.size and high.max() > low.min())

    @cached_property
    def _options(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Options of which rules can be, by kernel and table."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for option in np.flatnonzero(self._once & self.instance.allowed).tolist():
            found[int(self.kernel[option]), int(self.instance.table_of[option])].append(option)
        none = np.empty(0, dtype=np.int64)
        return defaultdict(lambda: none, {k: np.asarray(v, np.int64) for k, v in found.items()})

    def broken(self, plan: Placement) -> Rules:
        """Rules of two tables that meet with two ratios."""
        level, once = self.level[plan.options], self._once[plan.options]
        return {
            (kernel, one, other)
            for kernel, tables in self._met(plan)
            for one, other in permutations([t for t in tables if once[t]], 2)
            if level[one] != level[other] and self._needed(kernel, one, other)
        }

    def told(self, rules: Rules) -> list[str]:
        """The names of the rules' resources."""
        table = self.instance.table_names
        named = ((table[one], table[other], self._names[k]) for k, one, other in sorted(rules))
        return [RULE + json.dumps(each) for each in named]

    def named(self, told: Any) -> Rules:
        """Rules from the names of their resources; none if any is none."""
        kernels = {name: kernel for kernel, name in enumerate(self._names)}
        tables = {name: table for table, name in enumerate(self.instance.table_names)}
        try:
            each = [json.loads(name.removeprefix(RULE)) for name in told]
            return {(kernels[k], tables[one], tables[other]) for one, other, k in each}
        except (AttributeError, KeyError, TypeError, ValueError):
            return Rules()

    def apart(self, rules: Rules) -> Instance:
        """The instance with rules.

        With levels of 0 to n among both, a shard of the first table takes its level of a resource
        of its rank, a shard of the other n less its level, and there are n: each alone fits, and
        both if the first level is no higher. Tables have one shard a rank (columns may have more,
        and have no rules).
        """
        instance, resources, columns = self.instance, [*self.instance.resources], []
        if not rules:
            return instance
        entries = np.diff(instance.block_shards)
        kernel = np.where(self._once, self.kernel, -1)
        kernel, table, level = (
            np.repeat(of[instance.option_of], entries)
            for of in (kernel, instance.table_of, self.level)
        )
        kernel[np.repeat(self.aside, entries)] = -1
        for (name, one, other), rule in zip(sorted(rules), self.told(rules), strict=True):
            first, second = ((kernel == name) & (table == each) for each in (one, other))
            levels = np.unique(level[first | second])
            at, most = np.searchsorted(levels, level), max(0, len(levels) - 1)
            columns.append(np.where(first, at, 0) + np.where(second, most - at, 0))
            full = np.full(instance.num_ranks, most, dtype=np.int64)
            resources.append(Resource(rule, Scope.RANK, full))
        use = np.column_stack([instance.shard_use, *columns])
        return replace(instance, resources=tuple(resources), shard_use=use)

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
        """An instance with each set, and the tables that it has in a group already, in one."""
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

    def mended(self, plan: Placement) -> Iterator[Placement]:
        """A plan itself if nothing clashes, else with one ratio for each set where it lies, those
        near what runs; only what the instance allows."""
        for near in respreads(self.grouped(self.instance, self.clashes(plan)), plan):
            if check(self.instance, near).feasible and not self.clashes(near):
                yield near
