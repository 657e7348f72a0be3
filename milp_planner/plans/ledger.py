"""The ledger of a plan: use of every rank's HBM and every machine's DDR and SSD, by entry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from formulations import Instance, Placement
from formulations.instance import IntArray
from formulations.result.check import compute_loads
from milp_planner.files import Facts
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import memories
from milp_planner.plans.placement import Plan
from milp_planner.pricing.entries import (
    CHECKPOINT,
    RANK_ENTRIES,
    SHARD_ENTRIES,
    SHARD_NAMES,
    alive,
    alive_outside_exchange,
    moments_of,
    stored,
)
from milp_planner.pricing.outside import (
    OUTSIDE,
    assumed_ddr,
    dense_part,
    exchange_bytes,
    outside,
    outside_ddr,
)
from milp_planner.pricing.shards import FOLLOW_ROWS, Held, held_by
from milp_planner.pricing.storage import runtime_value_bytes

_ALIVE = {entry.name: entry.moments for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)}
MEANING = {entry.name: entry.what for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)} | OUTSIDE
"""Meaning of every entry."""


@dataclass(frozen=True)
class PlaceBytes:
    """The memory of one rank or machine."""

    place: int
    moment: str
    """When it is fullest: a moment of the step or, for DDR, the checkpoint; empty if use never
    changes."""
    entries: dict[str, int]
    """Bytes of every entry alive then, without the headroom; entries of 0 bytes are left out."""
    headroom: int
    """Bytes that must stay free."""
    whole: int
    """Total capacity."""
    moments: dict[str, int]
    """Bytes in use at every moment."""

    @property
    def used(self) -> int:
        """Bytes in use at the fullest moment."""
        return sum(self.entries.values())

    @property
    def room(self) -> int:
        """Free bytes beyond the headroom; negative if the headroom is not kept."""
        return self.whole - self.headroom - self.used


@dataclass(frozen=True)
class TableBytes:
    """The HBM of one table, summed over its ranks."""

    name: str
    rows: int
    """Weights, optimizer state and indices, which stay."""
    buffers: int
    """Ids, embeddings and gradients at the table's fullest moment, in addition."""


@dataclass(frozen=True)
class LedgerInfo(Facts):
    """The ledgers of all ranks and machines."""

    hbm: tuple[PlaceBytes, ...]
    """HBM of every rank; empty on a cluster without HBM."""
    ddr: tuple[PlaceBytes, ...]
    meaning: dict[str, str]
    """Meaning of every entry that occurs."""
    assumed: str | None
    """A sentence about assumptions for values that the inputs do not state."""
    tables: tuple[TableBytes, ...] = ()
    """Tables in HBM, in the model's order."""
    ssd: tuple[PlaceBytes, ...] = ()
    """SSD of every machine; empty on a cluster without SSD."""
    stores: dict[str, int] = field(default_factory=dict)
    """Bytes that each external store keeps for dynamicemb's tables: rows with their state, in all
    slots of all ranks."""

    @property
    def memories(self) -> tuple[tuple[str, str, tuple[PlaceBytes, ...]], ...]:
        """Name, scope and places of each memory of the cluster."""
        found = (
            ("hbm", "rank", self.hbm),
            ("ddr", "machine", self.ddr),
            ("ssd", "machine", self.ssd),
        )
        return tuple(each for each in found if each[2])


def ledger_of(plan: Plan) -> LedgerInfo | None:
    """The ledger of a plan.

    None without a placement, or if its Instance counts other bytes, as in a plan of an earlier
    version.
    """
    if plan.outcome.placement is None or not plan.tables:
        return None
    held = held_of(plan)
    if held is None or not is_charged(plan, held):
        return None
    hbm = () if plan.cluster.cpu_only else tuple(hbm_of(plan, held))
    ddr = tuple(_machines(plan, held))
    ssd = tuple(_drives(plan, held)) if plan.cluster.has_ssd else ()
    named = {name for place in (*hbm, *ddr, *ssd) for name in place.entries}
    return LedgerInfo(
        hbm=hbm,
        ddr=ddr,
        meaning={name: what for name, what in MEANING.items() if name in named},
        assumed=assumed_of(plan.model, plan.cluster),
        tables=() if plan.cluster.cpu_only else tuple(_tables(plan, held)),
        ssd=ssd,
        stores=stores_of(plan),
    )


def stores_of(plan: Plan) -> dict[str, int]:
    """Bytes that each external store keeps, by its name; no memory of the cluster counts them.

    ``max_capacity`` slots of the values' bytes on every rank are what the store is told to hold;
    how it keeps keys is its own affair.

    References
    ----------
    NVIDIA/recsys-examples, ``batched_dynamicemb_tables.py``, ``_create_cache_storage``: the store
    gets the table's options.
    """
    found: dict[str, int] = {}
    for placed in plan.tables:
        table, slots = plan.model.table(placed.name), placed.capacity_per_rank or 0
        if (store := table.external_storage) and placed.mode in ("CACHING", "HOST_ONLY"):
            optimizer = plan.model.optimizer_of(table)
            row = runtime_value_bytes(table.dim, table.element_bytes, optimizer)
            found[store] = found.get(store, 0) + plan.cluster.num_ranks * slots * row
    return found


def assumed_of(model: Model, cluster: Cluster) -> str | None:
    """A line about assumptions on HBM and host memory; None if the inputs state everything."""
    most = max(rank.hbm_bytes for rank in cluster.ranks)
    assumptions = [outside(model, cluster, most).assumed, assumed_ddr(model, cluster)]
    return "; ".join(each for each in assumptions if each is not None) or None


def held_of(plan: Plan) -> Held | None:
    """Bytes that the plan's options hold; None if this version does not offer these options."""
    names = [table.option for table in plan.tables]
    held = held_by(plan.model, plan.cluster, plan.profile, names)
    return held if held is not None and len(_rows(plan)) == len(held.ledger) else None


def is_charged(plan: Plan, held: Held) -> bool:
    """Whether the plan's Instance counts these bytes; for HBM, at some moment."""
    rows, instance = _rows(plan), plan.instance
    moments = moments_of(plan.model.grows)
    at = [held.ledger @ alive(moment) for moment in moments]
    kept = [held.ledger @ alive_outside_exchange(moment) for moment in moments]
    if plan.cluster.room_for_rows(plan.model) is not None:
        at, kept = [*at, held.ledger @ stored()], [*kept, held.ledger @ stored()]
    for index, resource in memories(instance):
        if resource.name in ("ssd_step", "stash"):
            continue  # traffic of a step, not stored bytes
        use = instance.shard_use[rows, index]
        likely = {"ddr": [held.ddr], "ssd": [held.ssd]}.get(resource.name, at)
        alone = (
            kept if ":" in resource.name else likely
        )  # a shard takes part in its own collective only
        pairs = zip(likely, alone, strict=True)
        if not any(bool(((use == each) | (use == other)).all()) for each, other in pairs):
            return False
    return True


def hbm_of(plan: Plan, held: Held) -> Iterator[PlaceBytes]:
    """The HBM of every rank."""
    shards, exchanged = shards_at(plan, held), _everywhere(plan)
    alike = {
        rank: outside(plan.model, plan.cluster, rank.hbm_bytes, rank.reserved_bytes).entries
        for rank in set(plan.cluster.ranks)
    }
    for number, rank in enumerate(plan.cluster.ranks):
        fixed = dict(alike[rank])
        headroom = fixed.pop("headroom", 0)
        found = {
            moment: _some(dict(zip(SHARD_NAMES, shards[moment][number].tolist(), strict=True)))
            | everywhere
            | fixed
            | _some({"dense_part": dense_part(plan.cluster, moment)})
            for moment, everywhere in exchanged.items()
        }
        used = {moment: sum(entries.values()) for moment, entries in found.items()}
        fullest = max(used, key=lambda moment: used[moment])
        yield PlaceBytes(number, fullest, found[fullest], headroom, rank.hbm_bytes, used)


def _everywhere(plan: Plan) -> dict[str, dict[str, int]]:
    """Bytes of the exchange on every rank at each moment."""
    amounts = exchange_bytes(plan.model, plan.cluster.num_ranks)
    return {
        moment: _some({name: n for name, n in amounts.items() if moment in _ALIVE[name]})
        for moment in moments_of(plan.model.grows)
    }


def _some(amounts: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}


def _machines(plan: Plan, held: Held) -> Iterator[PlaceBytes]:
    """The DDR of every machine."""
    columns = np.stack([held.ddr - held.staged, held.staged], axis=1)
    by_rank = ranks_of_rows(plan, columns)
    for number, ranks in enumerate(plan.cluster.machine_ranks):
        found = outside_ddr(plan.model, plan.cluster, number)
        headroom = found.pop("headroom", 0)
        tables, staged = by_rank[list(ranks)].sum(axis=0).tolist()
        entries = _some({"host_tables": tables, "checkpoint_staging": staged} | found)
        whole, used = plan.cluster.machines[number].ddr_bytes, sum(entries.values())
        moments = {"": used - staged} | ({CHECKPOINT: used} if staged else {})
        yield PlaceBytes(number, max(moments), entries, headroom, whole, moments)


def _drives(plan: Plan, held: Held) -> Iterator[PlaceBytes]:
    """The SSD of every machine: live rows, and the most stale rows before compaction."""
    live = ranks_of_rows(plan, held.ssd[:, None])[:, 0]
    for number, (machine, ranks) in enumerate(
        zip(plan.cluster.machines, plan.cluster.machine_ranks, strict=True)
    ):
        rows = int(live[list(ranks)].sum())
        factor = machine.ssd.space_amplification if machine.ssd else 1
        entries = _some({"ssd_rows": rows, "stale_rows": math.ceil(rows * factor) - rows})
        whole, used = machine.ssd.size if machine.ssd else 0, sum(entries.values())
        yield PlaceBytes(number, "", entries, 0, whole, {"": used})


def _tables(plan: Plan, held: Held) -> Iterator[TableBytes]:
    """Stored bytes and buffers of every table in HBM."""
    stays = stored()
    moments = moments_of(plan.model.grows)
    kinds = np.stack([stays, *((1 - stays) * alive(moment) for moment in moments)], axis=1)
    counted = _counting(plan, held.ledger @ kinds)
    for table, placed in enumerate(plan.tables):
        found = compute_loads(*counted, [table]).cost.sum(axis=0)
        if found.any():
            yield TableBytes(placed.name, int(found[0]), int(found[1:].max()))


def shards_at(plan: Plan, held: Held) -> dict[str, IntArray]:
    """Bytes of every entry of shards on each rank at each moment; int64 arrays [ranks, entries].

    If only the largest collective counts, the bytes of the exchange are those of each rank's
    largest.
    """
    whole, passing = ranks_of_rows(plan, held.ledger), np.isin(SHARD_NAMES, FOLLOW_ROWS)
    piles = np.stack([ranks_of_rows(plan, held.ledger, tables) for tables in collectives_of(plan)])
    found = {}
    for moment in moments_of(plan.model.grows):
        sums = (piles * (passing * alive(moment))).sum(axis=2)
        largest = piles[sums.argmax(axis=0), np.arange(len(whole))]
        found[moment] = np.where(passing, largest, whole) * alive(moment)
    return found


def collectives_of(plan: Plan) -> list[list[int]]:
    """Groups of tables whose exchanges are in memory together: all, or one for each collective."""
    if plan.model.workload.buffers == "additive":
        return [list(range(len(plan.tables)))]
    found: dict[tuple[str, ...], list[int]] = {}
    for index, (placed, table) in enumerate(zip(plan.tables, plan.model.tables, strict=True)):
        key = (placed.kind, table.output, placed.sharding_type)
        found.setdefault(key, []).append(index)
    return list(found.values())


def ranks_of_rows(plan: Plan, columns: IntArray, tables: Sequence[int] | None = None) -> IntArray:
    """Columns of the chosen options' shard entries, summed over the shards on each rank.

    Parameters
    ----------
    plan : Plan
    columns : int64 array [entries, columns]
        Rows as in :class:`milp_planner.pricing.shards.Held`.
    tables : sequence of int, optional
        Only these tables.

    Returns
    -------
    int64 array [ranks, columns]
    """
    return compute_loads(*_counting(plan, columns), tables).cost


def _counting(plan: Plan, columns: IntArray) -> tuple[Instance, Placement]:
    """The plan's Instance with these columns for costs, and its placement."""
    placement, instance = plan.outcome.placement, plan.instance
    assert placement is not None
    cost = np.zeros((len(instance.shard_cost), columns.shape[1]), dtype=np.int64)
    cost[_rows(plan)] = columns
    names = tuple(str(i) for i in range(columns.shape[1]))
    return replace(instance, phases=names, shard_cost=cost), placement


def bytes_on(plan: Plan, columns: IntArray, rank: int) -> list[int]:
    """The sum of all columns over each table's shards on one rank; columns as in
    :func:`ranks_of_rows`."""
    counted = _counting(plan, columns.sum(axis=1, keepdims=True))
    tables = range(len(plan.tables))
    return [int(compute_loads(*counted, [table]).cost[rank, 0]) for table in tables]


def _rows(plan: Plan) -> IntArray:
    """Shard entries of the chosen options in the plan's Instance, table after table."""
    placement, instance = plan.outcome.placement, plan.instance
    assert placement is not None
    ends = [(instance.option_blocks[o], instance.option_blocks[o + 1]) for o in placement.options]
    return np.concatenate(
        [np.arange(instance.block_shards[low], instance.block_shards[high]) for low, high in ends]
    )
