"""Why every table is where it is: the best alternatives, what they cost, and what forbids them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from formulations import Instance, InstanceError, Outcome, Placement, Status
from formulations.capacity.budget import Budget
from formulations.diagnose.diagnosis import conflict
from formulations.instance import Pin
from formulations.presolve import usable
from formulations.proof.prove import symmetric_lp
from formulations.reduce import forced_bounds
from formulations.result.piles import Piles, piles
from milp_planner.errors import BadInput
from milp_planner.features.explain.swap import Shortage, swap
from milp_planner.features.plan.tables import tables_of
from milp_planner.files import Facts
from milp_planner.inputs.problems import choice

#: Most tables to explain when the caller names none.
MOST_TABLES = 40


@dataclass(frozen=True)
class Alternative:
    """One option that was not chosen."""

    option: str
    bound: int | None
    """Lower bound on any plan that uses it; None when no plan can use it."""
    bound_from: str
    """Origin of ``bound``: ``certificate`` (re-derived in integers from the plan's multipliers),
    ``re-solved``, or ``the plan`` (its own bound, which holds for every plan)."""
    cost: int | None
    """Objective of the best plan found that uses it, with every other table placed anew."""
    status: str
    """``optimal``: ``cost`` is proved best; ``feasible``: ``bound`` ≤ best ≤ ``cost``;
    ``infeasible``: proved that no plan can use it; ``unknown``: only the bound is known."""
    beside: int | None
    """The objective with every other table left where it is; None when it does not fit there."""
    lacks: tuple[Shortage, ...]
    """Capacity missing in that case; empty when the option fits, or breaks only other rules."""
    clashes: tuple[str, ...]
    """Those other rules: ``fusion``, ``moves``; ``places`` when there are too few places."""
    forbidden_by: tuple[str, ...]
    """When no plan can use it: the constraints in conflict with it (resource names, ``fusion``,
    ``pins``, ``forbidden``, ``moves``); empty when the search for them ran out of time."""


@dataclass(frozen=True)
class TableWhy:
    """One table: its chosen option and the best alternatives."""

    table: str
    option: str
    alternatives: tuple[Alternative, ...]
    options: int
    """Number of its options."""


#: Time limit for re-solving one alternative: this share of the plan's solve time, but at least this
#: many seconds.
TIME_SHARE, ONE_SECONDS = 0.05, 0.5


@dataclass(frozen=True)
class WhyInfo(Facts):
    """The alternatives of every table explained."""

    objective_kind: str
    time_unit: str
    objective: int
    """The plan's objective."""
    bound: int | None
    """The plan's bound."""
    tables: tuple[TableWhy, ...]
    """The tables that the caller named; else all, or the ``MOST_TABLES`` costliest of more."""
    left: int = 0
    """Number of the instance's tables that are not explained."""
    best: int | None = None
    """Objective of the best plan before goals, where this plan gave up some of it for a goal."""


def why(
    instance: Instance,
    outcome: Outcome,
    budget: Budget,
    tables: Sequence[str] = (),
    count: int = 3,
) -> tuple[WhyInfo, Placement | None]:
    """The best alternatives of every table, and the best plan found on the way that beats this one.

    Alternatives are ranked by their certified bounds. They are re-solved in turn, with the option
    pinned, until time runs out; the rest keep their certified bounds. Without ``tables``, all are
    explained, or the ``MOST_TABLES`` with the largest cost on one rank. BadInput for an outcome
    without a plan, or an unknown table.
    """
    if outcome.placement is None or outcome.objective is None:
        raise BadInput("explain why: the plan places nothing; ask why-not")
    for name in tables:
        if name not in instance.table_names:
            raise BadInput(f"table {name!r}: {choice(name, list(instance.table_names))}")
    asked = [instance.table_index(n) for n in tables] or _costliest(instance, outcome.placement)
    bounds = _bounds(instance, outcome)
    whole = piles(instance, outcome.placement)
    left = len(asked) * count
    budget = budget.no_longer_than(max(ONE_SECONDS, TIME_SHARE * outcome.seconds))
    found: list[TableWhy] = []
    better = _Better(outcome.to_beat)
    for table in asked:
        others = _best(instance, outcome.placement, bounds, table)[:count]
        rows = []
        for option in others:
            rows.append(
                _alternative(
                    instance, outcome, bounds, whole, option, (budget, 2 / (left + 1)), better
                )
            )
            left -= 1
        left -= count - len(others)
        chosen = instance.option_names[int(outcome.placement.options[table])]
        size = len(instance.options_of(table))
        found.append(TableWhy(instance.table_names[table], chosen, tuple(rows), size))
    info = WhyInfo(
        instance.objective.value, instance.time_unit, outcome.objective, outcome.bound,
        tuple(found), instance.num_tables - len(found), outcome.before_goals,
    )  # fmt: skip
    return info, better.placement


@dataclass
class _Better:
    """The best plan found on the way, if it beats the plan being explained."""

    objective: int
    placement: Placement | None = None

    def offer(self, placement: Placement | None, objective: int | None) -> None:
        if placement is not None and objective is not None and objective < self.objective:
            self.objective, self.placement = objective, placement


def _costliest(instance: Instance, placement: Placement) -> list[int]:
    """All tables, or of more the ``MOST_TABLES`` with the largest cost on one rank, in order."""
    if instance.num_tables <= MOST_TABLES:
        return list(range(instance.num_tables))
    rows = tables_of(instance, placement).rows
    return sorted(range(len(rows)), key=lambda t: (-rows[t].cost, t))[:MOST_TABLES]


def _bounds(instance: Instance, outcome: Outcome) -> list[int | None] | None:
    """The bound that the multipliers of the plan's certificate prove for every option."""
    certificate = outcome.certificate
    if certificate is None or certificate.kind != "bound" or not certificate.vectors:
        solved = symmetric_lp(instance, outcome.objective)
        certificate = None if solved is None else solved.certificate
    if certificate is None:
        return None
    try:
        return forced_bounds(instance, certificate)
    except InstanceError:
        return None


def _best(
    instance: Instance, placement: Placement, bounds: list[int | None] | None, table: int
) -> list[int]:
    """The options not chosen, by ascending bound; impossible ones last."""
    chosen = int(placement.options[table])
    others = [o for o in instance.options_of(table) if o != chosen]
    if bounds is None:
        return others

    def rank(option: int) -> tuple[bool, int, int]:
        bound = bounds[option]
        return bound is None, bound or 0, option

    return sorted(others, key=rank)


def _alternative(
    instance: Instance,
    outcome: Outcome,
    bounds: list[int | None] | None,
    whole: Piles,
    option: int,
    time: tuple[Budget, float],
    better: _Better,
) -> Alternative:
    assert outcome.placement is not None
    budget, share = time
    bound = None if bounds is None else bounds[option]
    name, table = instance.option_names[option], int(instance.table_of[option])
    swapped = swap(instance, outcome.placement, option, whole)
    hint, beside = outcome.placement, None
    lacks: tuple[Shortage, ...] = ()
    clashes: tuple[str, ...] = ("places",)
    if swapped is not None:
        hint, beside = swapped.placement, swapped.objective
        lacks, clashes = swapped.lacks, swapped.clashes
        better.offer(hint, beside)
    if bounds is not None and bound is None:
        alone = forbidden_by(instance, option, budget, share)
        return Alternative(
            name, None, "certificate", None, Status.INFEASIBLE.value, None, lacks, clashes, alone,
        )  # fmt: skip
    known = max((b for b in (bound, outcome.proved_bound) if b is not None), default=None)
    if beside is not None and known is not None and beside <= known:  # already proved best
        return Alternative(
            name, known, "certificate" if known == bound else "the plan", beside,
            Status.OPTIMAL.value, beside, lacks, clashes, (),
        )  # fmt: skip
    pins = (*(p for p in instance.pins if p.table != table), Pin(table, option))
    again = budget.solve(replace(instance, pins=pins), share, hint)
    better.offer(again.placement, again.objective)
    cost, origin = again.objective, "certificate"
    if beside is not None and (cost is None or beside < cost):
        cost = beside
    if again.proved_bound is not None and (bound is None or again.proved_bound > bound):
        bound, origin = again.proved_bound, "re-solved"
    blame: tuple[str, ...] = ()
    if again.status == Status.INFEASIBLE:
        bound, origin = None, "re-solved"
        blame = forbidden_by(instance, option, budget, share)
    return Alternative(
        name, bound, origin, cost, _status(again.status, cost, bound), beside, lacks, clashes,
        blame,
    )  # fmt: skip


def _status(status: Status, cost: int | None, bound: int | None) -> str:
    if status == Status.INFEASIBLE or cost is None:
        return (Status.INFEASIBLE if status == Status.INFEASIBLE else Status.UNKNOWN).value
    return (Status.OPTIMAL if cost == bound else Status.FEASIBLE).value


#: No conflict is searched in an instance with more options: each step would take too long.
MOST_OPTIONS = 20_000


def forbidden_by(instance: Instance, option: int, budget: Budget, share: float) -> tuple[str, ...]:
    """Names of the constraints in a minimal conflict with an option that no plan can use.

    They are resource names, ``fusion``, ``pins``, ``forbidden`` or ``moves``. Empty when the given
    share of the remaining time did not suffice.
    """
    if not instance.allowed[option]:
        pinned = any(p.table == int(instance.table_of[option]) for p in instance.pins)
        return ("pins",) if pinned else ("forbidden",)
    alone = _alone(instance, option)
    if alone:
        return alone
    if budget.over() or instance.num_options > MOST_OPTIONS:
        return ()
    left = budget.left()
    settings = replace(
        budget.settings, time_limit=None if left is None else left * share, on_progress=None
    )
    table = int(instance.table_of[option])
    others = tuple((table, o) for o in instance.options_of(table) if o != option)
    kept = tuple(f for f in instance.forbidden if f[0] != table)
    found = conflict(replace(instance, forbidden=kept + others), Budget(settings))
    if found is None:
        return ()
    # The table's other options are forbidden by the question, not by the instance.
    ours = any(f[0] != table for f in instance.forbidden)
    return tuple(c for c in found.constraints if c != "forbidden" or ours)


def _alone(instance: Instance, option: int) -> tuple[str, ...]:
    """Resources that the option alone needs more of than an empty cluster has."""
    table = int(instance.table_of[option])
    pins = (*(p for p in instance.pins if p.table != table), Pin(table, option))
    if usable(instance)[option]:
        return ()
    blamed = []
    for index, resource in enumerate(instance.resources):
        rest = [
            r if i == index else replace(r, capacity=r.capacity * 0 + 2**60)
            for i, r in enumerate(instance.resources)
        ]
        if not usable(replace(instance, resources=tuple(rest), pins=pins))[option]:
            blamed.append(resource.name)
    return tuple(blamed)
