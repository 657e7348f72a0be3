"""What a plan puts on every rank and machine: use against capacity, time in every phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from formulations import Instance, Placement, Scope
from formulations.check import Loads, compute_loads
from formulations.instance import Resource
from milp_planner.report.units import memory_name

#: Above this many ranks, rows stand for machines.
FOLD_ABOVE = 64


@dataclass(frozen=True)
class Usage:
    """Use and capacity of one resource at one place, in bytes (the instance's unit)."""

    resource: str
    used: int
    capacity: int


@dataclass(frozen=True)
class RankRow:
    """One rank.

    Attributes
    ----------
    rank, machine : int
    usage : tuple of Usage
        Of the resources that ranks have.
    phases : tuple of int
        Time in each phase.
    cost : int
        Their sum.
    critical : tuple of bool
        For each phase, whether no rank is slower in it.
    """

    rank: int
    machine: int
    usage: tuple[Usage, ...]
    phases: tuple[int, ...]
    cost: int
    critical: tuple[bool, ...]


@dataclass(frozen=True)
class MachineRow:
    """One machine: its own resources, and the extremes over its ranks.

    Attributes
    ----------
    machine : int
    ranks : tuple of int
    usage : tuple of Usage
        Of the resources that machines have.
    fullest : tuple of Usage
        Of each rank resource, the rank with the largest share in use.
    phases : tuple of int
        Largest time of its ranks in each phase.
    cost : int
        Largest sum of its ranks.
    """

    machine: int
    ranks: tuple[int, ...]
    usage: tuple[Usage, ...]
    fullest: tuple[Usage, ...]
    phases: tuple[int, ...]
    cost: int


@dataclass(frozen=True)
class RanksInfo:
    """All ranks and machines of a plan.

    Attributes
    ----------
    phases : tuple of str
    rows : tuple of RankRow
    machines : tuple of MachineRow
    barriers : tuple of int
        Largest time over all ranks in each phase: their sum is ``step_time``.
    time_unit : str
    """

    phases: tuple[str, ...]
    rows: tuple[RankRow, ...]
    machines: tuple[MachineRow, ...]
    barriers: tuple[int, ...]
    time_unit: str

    @property
    def folded(self) -> bool:
        """Whether people see a row a machine instead of a row a rank."""
        return len(self.rows) > FOLD_ABOVE

    def busiest(self, count: int) -> tuple[RankRow, ...]:
        """The ``count`` ranks with the largest sum, and one that sets each barrier; by rank."""
        chosen = {row.rank for row in sorted(self.rows, key=lambda r: (-r.cost, r.rank))[:count]}
        for phase, barrier in enumerate(self.barriers):
            slowest = [row.rank for row in self.rows if row.critical[phase]]
            if barrier and chosen.isdisjoint(slowest):
                chosen.add(slowest[0])
        return tuple(row for row in self.rows if row.rank in chosen)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def by_memory(usage: Iterable[Usage]) -> dict[str, Usage]:
    """The fullest resource of each memory: ``hbm:NAME``, one a collective, limit the same HBM."""
    fullest: dict[str, Usage] = {}
    for use in usage:
        name = memory_name(use.resource)
        known = fullest.get(name)
        if known is None or use.used * known.capacity > known.used * use.capacity:
            fullest[name] = use
    return fullest


def ranks_of(instance: Instance, placement: Placement) -> RanksInfo:
    """Loads of a well-formed placement, rank by rank and machine by machine."""
    loads = compute_loads(instance, placement)
    slowest = loads.cost.max(axis=0)
    return RanksInfo(
        phases=instance.phases,
        rows=tuple(_rank_row(instance, loads, r, slowest) for r in range(instance.num_ranks)),
        machines=tuple(_machine_row(instance, loads, m) for m in range(len(instance.machines))),
        barriers=tuple(int(v) for v in slowest),
        time_unit=instance.time_unit,
    )


def _rank_row(instance: Instance, loads: Loads, rank: int, slowest: np.ndarray) -> RankRow:
    cost = loads.cost[rank]
    return RankRow(
        rank=rank,
        machine=int(instance.machine_of[rank]),
        usage=tuple(_usage(instance, loads, Scope.RANK, rank)),
        phases=tuple(int(v) for v in cost),
        cost=int(cost.sum()),
        critical=tuple(bool(v) for v in (cost == slowest) & (cost > 0)),
    )


def _machine_row(instance: Instance, loads: Loads, machine: int) -> MachineRow:
    ranks = list(instance.machines[machine])
    cost = loads.cost[ranks]
    fullest = [
        _fullest(resource, use, ranks)
        for resource, use in zip(instance.resources, loads.use, strict=True)
        if resource.scope == Scope.RANK
    ]
    return MachineRow(
        machine=machine,
        ranks=tuple(ranks),
        usage=tuple(_usage(instance, loads, Scope.MACHINE, machine)),
        fullest=tuple(fullest),
        phases=tuple(int(v) for v in cost.max(axis=0)),
        cost=int(cost.sum(axis=1).max()),
    )


def _usage(instance: Instance, loads: Loads, scope: Scope, place: int) -> Iterator[Usage]:
    for resource, use in zip(instance.resources, loads.use, strict=True):
        if resource.scope == scope:
            yield Usage(resource.name, int(use[place]), int(resource.capacity[place]))


def _fullest(resource: Resource, use: np.ndarray, ranks: list[int]) -> Usage:
    share = use[ranks] / np.maximum(resource.capacity[ranks], 1)
    rank = ranks[int(np.argmax(share))]
    return Usage(resource.name, int(use[rank]), int(resource.capacity[rank]))
