"""An audit as figures: does it fit, how far from the bound, which ranks are to blame?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from formulations import Instance, Placement, Scope
from formulations.check import Loads
from formulations.instance import IntArray
from milp_planner.api.auditing import Audit
from milp_planner.report.tables import table_loads, tables_of

#: Places, ranks and tables named before the rest is left out.
MOST = 5


@dataclass(frozen=True)
class Share:
    """What one table contributes somewhere: bytes or time."""

    table: str
    amount: int


@dataclass(frozen=True)
class Overfull:
    """A place that holds more than it can.

    Attributes
    ----------
    resource, scope : str
    place, used, capacity : int
    tables : tuple of Share
        The largest contributions there.
    """

    resource: str
    scope: str
    place: int
    used: int
    capacity: int
    tables: tuple[Share, ...]

    @property
    def over(self) -> int:
        """Bytes too much."""
        return self.used - self.capacity


@dataclass(frozen=True)
class SlowRank:
    """A rank that others wait for.

    Attributes
    ----------
    rank : int
    phases : tuple of str
        The phases in which it is the slowest (all of them for ``busiest_rank``).
    excess : int
        Time it adds over the mean of all ranks: summed over those phases, or of its whole.
    tables : tuple of Share
        Where its time goes in those phases.
    """

    rank: int
    phases: tuple[str, ...]
    excess: int
    tables: tuple[Share, ...]


@dataclass(frozen=True)
class Gain:
    """A table that is faster in the best plan found.

    Attributes
    ----------
    table, option, better : str
        Its option in the audited plan and in the best one.
    cost, better_cost : int
        Its largest time on one rank under each.
    """

    table: str
    option: str
    better: str
    cost: int
    better_cost: int


@dataclass(frozen=True)
class AuditInfo:
    """All figures of an audit; None is unknown.

    Attributes
    ----------
    fits : bool
    violations : tuple of str
    objective_kind : str
    objective : int or None
        Of the audited plan, fit or not.
    objectives : dict
    bound : int or None
        No plan of these tables on this cluster can be below it.
    bound_method : str or None
    best : int or None
        Objective of the best plan found.
    best_status : str
    distance, saving : float or None
        (objective − bound) and (objective − best), each over the objective.
    as_run : dict or None
        Objectives of what the runtime makes of a plan that mixes ratios in a fusion group, and
        whether that fits.
    overfull : tuple of Overfull
    slow : tuple of SlowRank
    gains : tuple of Gain
        The tables with the largest difference to the best plan found, where that is better.
    time_unit : str
    """

    fits: bool
    violations: tuple[str, ...]
    objective_kind: str
    objective: int | None
    objectives: dict[str, int]
    bound: int | None
    bound_method: str | None
    best: int | None
    best_status: str
    distance: float | None
    saving: float | None
    as_run: dict[str, Any] | None
    overfull: tuple[Overfull, ...]
    slow: tuple[SlowRank, ...]
    gains: tuple[Gain, ...]
    time_unit: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def audit_of(audit: Audit) -> AuditInfo:
    """Figures of an audit."""
    instance, best = audit.instance, audit.best
    source = best.bound_source
    loads = audit.verdict.loads
    assert loads is not None  # the audit refuses plans that are not well formed
    run = audit.as_run
    by_table = _Contributions(instance, audit.placement)
    return AuditInfo(
        fits=audit.verdict.feasible,
        violations=audit.verdict.violations,
        objective_kind=instance.objective.value,
        objective=audit.objective,
        objectives=audit.verdict.objectives,
        bound=best.bound,
        bound_method=None if source is None else source.method,
        best=best.objective,
        best_status=best.status.value,
        distance=audit.distance,
        saving=audit.saving,
        as_run=None if run is None else {"fits": run.feasible, "objectives": run.objectives},
        overfull=tuple(_overfull(instance, loads, by_table)),
        slow=tuple(_slow(instance, loads, by_table)),
        gains=tuple(_gains(audit)),
        time_unit=instance.time_unit,
    )


class _Contributions:
    """What every table puts on every rank.

    Attributes
    ----------
    cost : int64 array [tables, ranks, phases]
    use : int64 array [tables, ranks, resources]
    off : int64 array [tables, resources]
        Use that sits on no rank.
    """

    def __init__(self, instance: Instance, placement: Placement) -> None:
        loads = [table_loads(instance, placement, t) for t in range(instance.num_tables)]
        self.names = instance.table_names
        shape = (0, instance.num_ranks)
        self.cost = np.stack([x[0] for x in loads]) if loads else np.zeros((*shape, 1), np.int64)
        self.use = np.stack([x[1] for x in loads]) if loads else np.zeros((*shape, 1), np.int64)
        self.off = np.stack([x[3] for x in loads]) if loads else np.zeros((0, 1), np.int64)

    def largest(self, amounts: IntArray) -> tuple[Share, ...]:
        """The largest positive amounts, int64 array [tables], with their tables."""
        order = np.argsort(-amounts, kind="stable")[:MOST]
        return tuple(Share(self.names[t], int(amounts[t])) for t in order if amounts[t] > 0)


def _gains(audit: Audit) -> list[Gain]:
    """Tables by what the best plan saves on them; none where it saves nothing as a whole."""
    if audit.best.placement is None or audit.saving is None or audit.saving <= 0:
        return []
    now = tables_of(audit.instance, audit.placement).rows
    best = tables_of(audit.instance, audit.best.placement).rows
    pairs = [(a, b) for a, b in zip(now, best, strict=True) if a.cost > b.cost]
    pairs.sort(key=lambda pair: pair[1].cost - pair[0].cost)
    return [Gain(a.name, a.option, b.option, a.cost, b.cost) for a, b in pairs[:MOST]]


def _overfull(instance: Instance, loads: Loads, tables: _Contributions) -> list[Overfull]:
    found = []
    for index, (resource, use) in enumerate(zip(instance.resources, loads.use, strict=True)):
        for place in np.flatnonzero(use > resource.capacity):
            amounts = tables.use[:, _ranks_of(instance, resource.scope, int(place)), index]
            total = amounts.sum(axis=1)
            if resource.scope == Scope.CLUSTER:
                total = total + tables.off[:, index]
            found.append(
                Overfull(
                    resource.name,
                    resource.scope.value,
                    int(place),
                    int(use[place]),
                    int(resource.capacity[place]),
                    tables.largest(total),
                )
            )
    return sorted(found, key=lambda place: -place.over)


def _ranks_of(instance: Instance, scope: Scope, place: int) -> list[int]:
    if scope == Scope.RANK:
        return [place]
    return list(instance.machines[place] if scope == Scope.MACHINE else range(instance.num_ranks))


def _slow(instance: Instance, loads: Loads, tables: _Contributions) -> list[SlowRank]:
    """Ranks that set the objective, by the time they add; ``total`` waits for nobody."""
    kind = instance.objective.value
    cost = loads.cost
    if kind == "total" or instance.num_ranks == 1:
        return []
    if kind == "busiest_rank":
        cost = cost.sum(axis=1, keepdims=True)
    excess = cost - cost.mean(axis=0)
    critical = (cost == cost.max(axis=0)) & (excess > 0)
    added = np.where(critical, excess, 0).sum(axis=1)
    ranks = [int(r) for r in np.argsort(-added, kind="stable") if added[r] > 0]
    found = []
    for rank in ranks:
        phases = np.flatnonzero(critical[rank])
        if kind == "busiest_rank":
            phases = np.arange(len(instance.phases))
        amounts = tables.cost[:, rank][:, phases].sum(axis=1)
        names = tuple(instance.phases[p] for p in phases)
        found.append(SlowRank(rank, names, int(added[rank]), tables.largest(amounts)))
    return found
