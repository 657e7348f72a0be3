"""Where a plan's figures come from: shares of each rank's seconds and bytes, by their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations.instance import IntArray
from formulations.result.check import compute_loads
from milp_planner.drawing.grid import Cell, Grid
from milp_planner.drawing.units import show_share
from milp_planner.files import Facts
from milp_planner.inputs.table import Table
from milp_planner.plans.ledger import LedgerInfo
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.sources import (
    DATA_SHEET,
    HOWS,
    Source,
    exchange_operators,
    lookup_operator,
    weakest,
)

OF_BYTES = {
    "measured": "measured", "assumed": "assumed",
    **dict.fromkeys(
        ("dense", "dense_activations", "context", "further", "rank", "reserved", "dense_part",
         "fragmentation"), "stated",
    ),
}  # fmt: skip
"""Source of the ledger's entries outside the embeddings; all others are formulas."""
FORMULA = "formula"
BYTE_KINDS = (FORMULA, "measured", "stated", "assumed")
UPDATES = ("bwd_compute", "compute")
"""Phases in which an optimizer works."""


@dataclass(frozen=True)
class OriginsInfo(Facts):
    """The sources of a plan's seconds and bytes, rank by rank."""

    kinds: tuple[str, ...]
    """Sources of seconds, such as ``measured on NVIDIA H100``, from the strongest."""
    seconds: tuple[tuple[int, ...], ...]
    """Picoseconds of each rank from each of them."""
    byte_kinds: tuple[str, ...]
    """Sources of bytes: ``formula``, ``measured``, ``stated`` in the inputs, or ``assumed``."""
    bytes: tuple[tuple[int, ...], ...]
    """Bytes of HBM of each rank from each of them, at its fullest moment; empty if unknown."""
    error: float | None
    """The relative error that the profile states of its prices."""

    @property
    def slowest(self) -> int:
        """The rank with the most seconds."""
        return max(range(len(self.seconds)), key=lambda rank: sum(self.seconds[rank]))


def origins_of(plan: Plan, ledger: LedgerInfo | None) -> OriginsInfo | None:
    """The sources of a plan's figures; None without a placement of the plan's tables."""
    instance, placement = plan.instance, plan.outcome.placement
    if placement is None or len(plan.tables) != len(placement.options):
        return None
    found: dict[Source, int] = {}
    links = plan.cluster.interconnect
    crossed = () if links is None else links.domain_machines(len(plan.cluster.machines))
    network = len(crossed) > 1  # the ranks' exchange crosses network cards
    columns: list[list[int]] = []
    for spec, placed in zip(plan.model.tables, plan.tables, strict=True):
        each = [_source(plan, spec, placed, phase, network) for phase in instance.phases]
        columns.append([found.setdefault(source, len(found)) for source in each])
    order = sorted(found, key=lambda source: (HOWS.index(source.how), source.hardware))
    seconds = _by_source(plan, columns, [found[source] for source in order])
    used = [i for i in range(len(order)) if seconds[:, i].any()]
    places = () if ledger is None else ledger.hbm
    amounts = [_bytes(place.entries) for place in places]
    names = tuple(kind for kind in BYTE_KINDS if any(kind in each for each in amounts))
    return OriginsInfo(
        kinds=tuple(order[i].words for i in used),
        seconds=tuple(map(tuple, seconds[:, used].tolist())),
        byte_kinds=names,
        bytes=tuple(tuple(each.get(name, 0) for name in names) for each in amounts),
        error=plan.profile.error,
    )


def _source(plan: Plan, spec: Table, placed: PlacedTable, phase: str, network: bool) -> Source:
    """The source of a table's seconds in a phase: the weakest of the numbers in it."""
    profile = plan.profile
    if phase == "sync":
        return DATA_SHEET  # averaging has the bandwidth that the cluster states
    if phase == "prefetch":
        return profile.source("ssd" if placed.mode == "SSD" else "prefetch")
    if phase == "ids":
        return profile.source("network" if network else "all_to_all")
    if phase.endswith("comms"):
        pooled = spec.output == "pooled"
        operators = exchange_operators(
            placed.sharding_type, pooled, phase.startswith("bwd"), network
        )
        return weakest([profile.source(each) for each in operators])
    operator = lookup_operator(
        placed.kind, placed.sharding_type, placed.mode, plan.cluster.cpu_only
    )
    source = profile.source(operator).for_dtype(spec.dtype)
    step, optimizer = profile.step, plan.model.optimizer_of(spec)
    stands_in = step is not None and optimizer != "none" and optimizer not in step.update
    if operator == "lookup" and stands_in and phase in UPDATES and source.how == "measured":
        return Source(how="interpolated", hardware=source.hardware)
    return source


def _by_source(plan: Plan, columns: Sequence[Sequence[int]], order: Sequence[int]) -> IntArray:
    """Picoseconds of every rank by source; int64 array [ranks, sources]."""
    instance, placement = plan.instance, plan.outcome.placement
    assert placement is not None
    cost = np.zeros((len(instance.shard_cost), max(order, default=0) + 1), dtype=np.int64)
    for option, each in zip(placement.options.tolist(), columns, strict=True):
        first, last = instance.option_blocks[option], instance.option_blocks[option + 1]
        rows = slice(int(instance.block_shards[first]), int(instance.block_shards[last]))
        for phase, source in enumerate(each):
            cost[rows, source] += instance.shard_cost[rows, phase]
    names = tuple(map(str, range(cost.shape[1])))
    counted = replace(instance, phases=names, shard_cost=cost)
    return compute_loads(counted, placement).cost[:, list(order)]


def _bytes(entries: dict[str, int]) -> dict[str, int]:
    """A rank's bytes by source."""
    found: dict[str, int] = {}
    for name, amount in entries.items():
        kind = OF_BYTES.get(name, FORMULA)
        found[kind] = found.get(kind, 0) + amount
    return found


def told(info: OriginsInfo) -> list[str]:
    """Where the figures of the slowest rank come from, and the stated error of the prices."""
    rank, parts = info.slowest, []
    if any(info.seconds[rank]):
        parts.append(f"seconds: {_shares(info.kinds, info.seconds[rank])}")
    if info.bytes:
        parts.append(f"bytes: {_shares(info.byte_kinds, info.bytes[rank])}")
    if not parts:
        return []
    error = "the profile states no error of its prices"
    if info.error is not None:
        error = f"stated error of prices: {info.error:.0%}"
    return [f"where the figures of rank {rank} come from: {'; '.join(parts)}; {error}"]


def _shares(kinds: Sequence[str], amounts: Sequence[int]) -> str:
    whole = sum(amounts)
    pairs = zip(kinds, amounts, strict=True)
    return ", ".join(f"{show_share(amount, whole)} {kind}" for kind, amount in pairs if amount)


def origins_grid(info: OriginsInfo) -> Grid:
    """Every rank: the share of its seconds, and of its bytes, from each source."""
    head = ["#rank", *(f"#{kind}" for kind in info.kinds)]
    head += [f"#bytes: {kind}" for kind in info.byte_kinds]

    def cells(amounts: Sequence[int]) -> list[Cell]:
        whole = max(1, sum(amounts))
        return [Cell(show_share(amount, whole), amount / whole) for amount in amounts]

    rows = [
        [Cell.count(rank), *cells(each), *(cells(info.bytes[rank]) if info.bytes else ())]
        for rank, each in enumerate(info.seconds)
    ]
    caption = "Every rank: where its seconds and bytes come from"
    return Grid.of("origins", "origins", caption, head, rows)
