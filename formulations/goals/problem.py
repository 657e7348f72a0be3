"""Goals as resources of an Instance: earlier goals become capacities, so every search obeys them.

The bytes in host memory, the number of shards and the sum of all costs are uses of a resource of
the whole cluster. A limit on how full ranks are reduces their capacities. Moves have a limit of
their own. "No worse in any earlier goal" is then an Instance like any other, and the check,
annealing, neighbourhoods and the exact model need to know nothing about goals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations.instance import Instance, IntArray, Resource, Scope
from formulations.instance.facts import own_cost, per_option, total_use
from formulations.neighbourhoods import lying
from formulations.presolve import Presolved, presolve
from formulations.reduce import bounds_at
from formulations.result.certificate import Certificate
from formulations.result.check import compute_loads, moved_bytes, moved_tables
from formulations.result.placement import Placement
from formulations.search.numbers import LOOSE, PARTS
from formulations.settings import (
    EVEN_MEMORY,
    HOST_MEMORY,
    MOVED_BYTES,
    MOVES,
    SHARDS,
    TOTAL,
    Goals,
)


@dataclass(frozen=True)
class Aim:
    """One number to be minimised.

    Attributes
    ----------
    goal : str
        The goal it belongs to; ``even_memory`` has one aim for ranks and one for machines.
    resource : int
        For a sum, and for the use of one resource, its number in the problem's Instance; else -1.
    scope : Scope or None
        For the fill of the fullest place, the scope of the places; else None. Without a resource,
        the fill is a share of the capacity, of whichever resource is fullest.
    enough : int
        A value low enough: nothing below it counts as better.
    step : int
        Values are rounded up to multiples of it.
    """

    goal: str
    resource: int = -1
    scope: Scope | None = None
    enough: int = 0
    step: int = 1

    @property
    def summed(self) -> bool:
        """Whether it is the use of a resource of the whole cluster."""
        return self.resource >= 0 and self.scope is None

    def rounded(self, value: int) -> int:
        """The value rounded up to a multiple of the step."""
        return -(-value // self.step) * self.step


class Problem:
    """The goals of one instance, in order.

    Parameters
    ----------
    instance : Instance
    goals : Goals

    Attributes
    ----------
    aims : tuple of Aim
        The aims of those goals that apply to this instance.
    """

    def __init__(self, instance: Instance, goals: Goals) -> None:
        self.original = instance
        aims, columns, resources = list[Aim](), [instance.shard_use], list(instance.resources)
        for goal in goals.order:
            values = _summed(instance, goal)
            if goal == EVEN_MEMORY:
                step = max(1, round(goals.step * PARTS))
                enough = -(-round(goals.enough * PARTS) // step) * step
                scopes = {r.scope for r in instance.resources if r.capacity.any()}
                aims += [Aim(goal, -1, s, enough, step) for s in (Scope.RANK, Scope.MACHINE)
                         if s in scopes]  # fmt: skip
            elif goal in (MOVES, MOVED_BYTES) and instance.current:
                aims.append(Aim(goal))
            elif goal in (known := [r.name for r in instance.resources]):
                index = known.index(goal)
                aims.append(Aim(goal, index, instance.resources[index].scope))
            elif values is not None and values.any():
                enough = 0 if values.min() >= 0 else -LOOSE  # sums of costs may lie below 0
                aims.append(Aim(goal, len(resources), enough=enough))
                resources.append(Resource(f"goal {goal}", Scope.CLUSTER, np.asarray([LOOSE])))
                columns.append(values[:, None])
        self.aims = tuple(aims)
        most = instance.max_moved_tables
        if most is None and instance.current:
            most = instance.num_tables
        self.instance = replace(
            instance, resources=tuple(resources), max_moved_tables=most,
            shard_use=np.concatenate(columns, axis=1),
        )  # fmt: skip

    def values(self, plan: Placement) -> list[int]:
        """The value of each aim in a plan, rounded up to the aim's step."""
        return list(map(Aim.rounded, self.aims, self.exact(plan)))

    def exact(self, plan: Placement) -> list[int]:
        """The value of each aim in a plan, not rounded."""
        use = compute_loads(self.instance, plan).use
        return [self._value(aim, plan, use) for aim in self.aims]

    def above(self, aim: Aim, plan: Placement, target: int) -> int:
        """By how much a plan exceeds a target of an aim, summed over the places that do."""
        use = compute_loads(self.instance, plan).use
        fills = [fill for _, fill in self._fills(aim, use)] if aim.scope else []
        return sum(max(0, value - target) for value in fills or [self._value(aim, plan, use)])

    def causes(self, aim: Aim, plan: Placement, target: int) -> list[int]:
        """Tables of a plan to which an aim owes its value: those that add to it, or chose ranks at
        places fuller than a target."""
        instance = self.instance
        if aim.summed:
            return np.flatnonzero(total_use(instance)[plan.options, aim.resource]).tolist()
        if aim.scope is None:
            return moved_tables(instance, plan)
        use = compute_loads(instance, plan).use
        full = [place for place, fill in self._fills(aim, use) if fill > target]
        at = np.arange(instance.num_ranks) if aim.scope == Scope.RANK else instance.machine_of
        here = lying(instance, plan)[:, np.isin(at, full)]
        return np.flatnonzero(here.any(axis=1)).tolist()

    def _value(self, aim: Aim, plan: Placement, use: list[IntArray]) -> int:
        if aim.summed:
            return int(use[aim.resource].sum())
        if aim.scope is None:
            moved = moved_tables(self.instance, plan)
            return len(moved) if aim.goal == MOVES else moved_bytes(self.instance, plan, moved)
        return max((fill for _, fill in self._fills(aim, use)), default=0)

    def _fills(self, aim: Aim, use: list[IntArray]) -> list[tuple[int, int]]:
        """Places and how full each is, of every resource that the aim is about."""
        whole, rooms = self.rooms(aim)
        return [
            (place, -(-whole * used // room))
            for index, capacity in rooms.items()
            for place, (used, room) in enumerate(
                zip(use[index].tolist(), capacity.tolist(), strict=True)
            )
            if room
        ]

    def rooms(self, aim: Aim) -> tuple[int, dict[int, IntArray]]:
        """What a full place counts as, and the room of every place of each resource that the fill
        of the fullest place is about: capacities, or one unit of the one resource."""
        resources = self.original.resources
        if aim.resource >= 0:
            return 1, {aim.resource: np.ones_like(resources[aim.resource].capacity)}
        return PARTS, {i: r.capacity for i, r in enumerate(resources) if r.scope == aim.scope}

    def within(self, limits: Sequence[int | None]) -> Instance:
        """The instance restricted to plans that exceed none of the aims' limits (None: no
        limit)."""
        resources, instance = list(self.instance.resources), self.instance
        most = {MOVES: instance.max_moved_tables, MOVED_BYTES: instance.max_moved_bytes}
        for aim, limit in zip(self.aims, limits, strict=True):
            if limit is None:
                continue
            if aim.resource >= 0:
                own = resources[aim.resource]
                least = np.minimum(own.capacity, limit)
                resources[aim.resource] = replace(own, capacity=least)
            elif aim.scope is None:
                known = most[aim.goal]
                most[aim.goal] = limit if known is None else min(known, limit)
            else:
                resources = [
                    _shrunk(r, limit)
                    if r.scope == aim.scope and i < len(self.original.resources)  # which come first
                    else r
                    for i, r in enumerate(resources)
                ]
        return replace(
            instance, resources=tuple(resources),
            max_moved_tables=most[MOVES], max_moved_bytes=most[MOVED_BYTES],
        )  # fmt: skip

    def presolved(self, most: int, certificate: Certificate | None) -> Presolved:
        """Options that plans whose objective is at most ``most`` may need for the goals."""
        found = presolve(self.instance)
        keep = found.kept & (own_cost(self.original) <= most)
        if certificate is not None and certificate.kind == "bound":
            bounds = bounds_at(self.original, keep, certificate)
            keep = keep if bounds is None else keep & bounds.below(most + 1)
        return replace(found, kept=keep)

    def least(self, aim: Aim) -> int:
        """A lower bound on an aim, from the options of each table alone."""
        instance = self.instance
        if aim.scope is None and aim.resource < 0:
            return 0
        allowed = np.where(instance.allowed, 0, LOOSE)
        use = total_use(instance)
        first = instance.table_options[:-1]
        if not len(first):
            return 0
        if aim.summed:
            cheapest = np.minimum.reduceat(_saturated(use[:, aim.resource], allowed), first)
            return sum(cheapest.tolist())
        found, (full, rooms) = aim.enough, self.rooms(aim)
        for index, capacity in rooms.items():
            if not capacity.any():
                continue
            room = sum(capacity.tolist())
            off = per_option(instance, np.where(instance.off_rank, 1, 0), np.maximum)
            own = np.where(off > 0, 0, use[:, index])
            whole = np.minimum.reduceat(_saturated(own, allowed), first)
            shard = np.where(instance.off_rank, 0, instance.shard_use[:, index])
            largest = _saturated(per_option(instance, shard, np.maximum), allowed)
            one = int(np.minimum.reduceat(largest, first).max())
            found = max(
                found, -(-full * sum(whole.tolist()) // room),
                -(-full * one // int(capacity.max())),
            )  # fmt: skip
        return aim.rounded(found)


def _saturated(values: IntArray, forbidden: IntArray) -> IntArray:
    return np.where(forbidden > 0, LOOSE, values)


def _shrunk(resource: Resource, parts: int) -> Resource:
    rooms = [min(room, room * parts // PARTS) for room in resource.capacity.tolist()]
    return replace(resource, capacity=np.asarray(rooms, dtype=np.int64))


def _summed(instance: Instance, goal: str) -> IntArray | None:
    """What each shard entry adds to a goal that is a sum; None for other goals."""
    if goal == SHARDS:
        return np.ones(len(instance.shard_use), dtype=np.int64)
    if goal == TOTAL:
        return instance.shard_cost.sum(axis=1)
    if goal != HOST_MEMORY:
        return None
    host = [
        (i, int(r.capacity.sum()))
        for i, r in enumerate(instance.resources)
        if r.scope != Scope.RANK and r.capacity.any()
    ]
    largest = max((room for _, room in host), default=1)
    values = np.zeros(len(instance.shard_use), dtype=np.int64)
    for index, room in host:
        used = instance.shard_use[:, index]
        values += used if room == largest else np.ceil(used * (largest / room)).astype(np.int64)
    return values
