"""How full every place is, and which tables fill it or take its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from formulations import Instance, Placement
from formulations.instance import IntArray
from formulations.result.check import Loads
from formulations.result.piles import piles
from milp_planner.drawing.units import memory_name, show_amount
from milp_planner.plans.compile import memories
from milp_planner.plans.ledger import LedgerInfo


@dataclass(frozen=True)
class Share:
    """One table's contribution to a place or a rank, in bytes or time."""

    table: str
    amount: int


@dataclass(frozen=True)
class Use:
    """Use and capacity of one resource at one place, in bytes (the instance's unit)."""

    resource: str
    used: int
    capacity: int
    scope: str
    """Such as ``rank``."""
    place: int
    """Rank or machine number (0 for the cluster)."""
    tables: tuple[Share, ...] = ()
    """The tables with the largest use of the place, where this is asked."""
    kept: int = field(default=0, kw_only=True)
    """How much of the capacity must stay free, if ``capacity`` is a whole memory."""

    @property
    def over(self) -> bool:
        """Whether the use exceeds what is allowed."""
        return self.headroom < 0

    @property
    def headroom(self) -> int:
        """Capacity left at the place; negative when over."""
        return self.capacity - self.kept - self.used

    @property
    def share(self) -> float:
        """Of the capacity that is in use; −1 where there is neither."""
        return self.used / max(1, self.capacity) if self.used or self.capacity else -1.0

    @property
    def at(self) -> str:
        """The place, in words."""
        return "the cluster" if self.scope == "cluster" else f"{self.scope} {self.place}"

    def room(self, unit: str) -> str:
        """The capacity left at the place, in words."""
        text = f"{show_amount(abs(self.headroom), unit)} {'too much' if self.over else 'free'}"
        return f"{text} beyond {show_amount(self.kept, unit)} of headroom" if self.kept else text


Uses = tuple[tuple[Use, ...], ...]
"""For each resource, the use of all its places."""


def uses_of(instance: Instance, loads: Loads) -> Uses:
    """Every place of every resource of an Instance."""
    found = []
    for index, resource in memories(instance):
        pairs = zip(loads.use[index].tolist(), resource.capacity.tolist(), strict=True)
        kind = resource.scope.value
        found.append(tuple(Use(resource.name, *pair, kind, n) for n, pair in enumerate(pairs)))
    return tuple(found)


def whole_uses(ledger: LedgerInfo) -> Uses:
    """Every place of every whole memory at its fullest moment."""
    return tuple(
        tuple(Use(memory, p.used, p.whole, scope, p.place, kept=p.headroom) for p in places)
        for memory, scope, places in ledger.memories
    )


def by_memory(uses: Iterable[Use]) -> dict[str, Use]:
    """The fullest resource of each memory; all ``hbm:NAME``, one per collective, limit one HBM."""
    fullest: dict[str, Use] = {}
    for use in uses:
        name = memory_name(use.resource)
        known = fullest.get(name)
        if known is None or use.used * known.capacity > known.used * use.capacity:
            fullest[name] = use
    return fullest


class Contributions:
    """The load of every table on every rank; int64 arrays.

    ``cost`` [tables, ranks, phases]; ``use`` [tables, ranks, resources]; ``off`` [tables,
    resources]: use on no rank.
    """

    def __init__(self, instance: Instance, placement: Placement) -> None:
        loads = [piles(instance, placement, [t]) for t in range(instance.num_tables)]
        self.names = instance.table_names
        shape = (0, instance.num_ranks)
        self.cost = np.stack([x.cost for x in loads]) if loads else np.zeros((*shape, 1), np.int64)
        self.use = np.stack([x.use for x in loads]) if loads else np.zeros((*shape, 1), np.int64)
        self.off = np.stack([x.off_use for x in loads]) if loads else np.zeros((0, 1), np.int64)

    def largest(self, amounts: IntArray, most: int) -> tuple[Share, ...]:
        """The largest positive entries of ``amounts``, int64 array [tables], with their tables."""
        order = np.argsort(-amounts, kind="stable")[:most]
        return tuple(Share(self.names[t], int(amounts[t])) for t in order if amounts[t] > 0)
