"""Two plans of the same tables, compared up to ranks and machines that are interchangeable.

Ranks of a machine with the same memory are alike, and so are machines with the same ranks; shards
of one table are alike, too. Comparing ranks by their numbers would refuse plans that run the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from milp_planner.integrations.replay.greedy import EVERYWHERE
from milp_planner.plans.placement import PlacedTable, Plan

_Seats = tuple[tuple[str, int], ...]
"""Tables with the number of their shards on one rank, in the order of their names."""


@dataclass(frozen=True)
class Difference:
    """One table that will not run as planned."""

    table: str
    reason: str
    """The first of type, mode, ratio, width, rank that differs."""
    planned: str
    runs: str


def differences(planned: Plan, ran: Plan) -> tuple[Difference, ...]:
    """The tables that differ, in the model's order; none if the plans are the same."""
    found = []
    here, there = _neighbours(planned), _neighbours(ran)
    for ours, theirs in zip(planned.tables, ran.tables, strict=True):
        reason = _reason(ours, theirs)
        if reason is None and here.get(ours.name) != there.get(ours.name):
            reason = "rank"
        if reason is not None:
            words = _words(ours, reason), _words(theirs, reason)
            found.append(Difference(ours.name, reason, *words))
    return tuple(found)


def _reason(ours: PlacedTable, theirs: PlacedTable) -> str | None:
    pairs = {
        "type": (ours.sharding_type, theirs.sharding_type),
        "mode": (ours.mode, theirs.mode),
        "ratio": (ours.cache_ratio, theirs.cache_ratio),
        "width": (ours.column_width, theirs.column_width),
    }
    return next((reason for reason, (a, b) in pairs.items() if a != b), None)


def _words(placed: PlacedTable, reason: str) -> str:
    if reason == "width":
        shards = f"{placed.column_shards} shards of " if placed.column_shards > 1 else ""
        return f"{shards}{placed.column_width} columns"
    ranks = [rank for block in placed.ranks for rank in block]
    return {
        "type": placed.sharding_type, "mode": placed.mode, "ratio": str(placed.cache_ratio),
        "rank": "ranks " + ",".join(map(str, ranks)),
    }[reason]  # fmt: skip


def _neighbours(plan: Plan) -> dict[str, Counter[tuple[object, _Seats]]]:
    """For every table that had a choice of ranks: what its machines and its ranks hold.

    Two plans agree in it for all tables exactly if exchanging like ranks and machines turns one
    into the other.
    """
    seats: list[Counter[str]] = [Counter() for _ in range(plan.cluster.num_ranks)]
    for placed in plan.tables:
        if placed.sharding_type not in EVERYWHERE:
            for rank in (rank for block in placed.ranks for rank in block):
                seats[rank][placed.name] += 1
    held: list[_Seats] = [tuple(sorted(each.items())) for each in seats]
    found: dict[str, Counter[tuple[object, _Seats]]] = {}
    for machine, ranks in zip(plan.cluster.machines, plan.cluster.machine_ranks, strict=True):
        pairs = [(str(rank), held[n]) for rank, n in zip(machine.ranks, ranks, strict=True)]
        whole = (machine.ddr_bytes, tuple(sorted(pairs)))
        for kind, seat in pairs:
            for name, _ in seat:
                found.setdefault(name, Counter())[((whole, kind), seat)] += 1
    return found
