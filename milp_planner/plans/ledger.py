"""What a plan puts into every rank's HBM and every machine's DDR, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations.instance import IntArray
from formulations.result.check import compute_loads, position_entries
from milp_planner.files import Facts
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan
from milp_planner.pricing.held import FOLLOW_ROWS, Held, held_by
from milp_planner.pricing.ledger import (
    CHECKPOINT,
    MOMENTS,
    RANK_ENTRIES,
    SHARD_ENTRIES,
    SHARD_NAMES,
    alive,
    alive_outside_exchange,
)
from milp_planner.pricing.outside import OUTSIDE, assumed_ddr, exchange_bytes, outside, outside_ddr

ROWS = ("weights", "state", "metadata", "cache_index")
"""Entries of shards that stay as long as the plan does."""
_ALIVE = {entry.name: entry.moments for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)}
MEANING = {entry.name: entry.what for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)} | OUTSIDE
"""What every entry is."""


@dataclass(frozen=True)
class PlaceBytes:
    """The memory of one rank or machine."""

    place: int
    moment: str
    """When it is fullest: of the step, or of DDR the checkpoint; empty where that is always."""
    entries: dict[str, int]
    """Bytes of every entry that is alive then, without the headroom; none is 0."""
    headroom: int
    """What must stay free."""
    whole: int
    """All there is."""
    moments: dict[str, int]
    """Bytes in use at every moment."""

    @property
    def used(self) -> int:
        """Bytes in use at the fullest moment."""
        return sum(self.entries.values())

    @property
    def room(self) -> int:
        """What is left beyond the headroom; negative where that is not kept."""
        return self.whole - self.headroom - self.used


@dataclass(frozen=True)
class TableBytes:
    """The HBM of one table, summed over its ranks."""

    name: str
    rows: int
    """Weights, optimizer state and indices: what stays."""
    buffers: int
    """Ids, embeddings and gradients beside them, at the table's fullest moment."""


@dataclass(frozen=True)
class LedgerInfo(Facts):
    """All ranks, all machines."""

    hbm: tuple[PlaceBytes, ...]
    """Empty on a cluster without HBM."""
    ddr: tuple[PlaceBytes, ...]
    meaning: dict[str, str]
    """Of every entry that occurs."""
    assumed: str | None
    """What was assumed because nobody said, in a sentence."""
    tables: tuple[TableBytes, ...] = ()
    """Those in HBM, in the model's order."""
    ssd: tuple[PlaceBytes, ...] = ()
    """Empty on a cluster without SSD."""

    @property
    def memories(self) -> tuple[tuple[str, str, tuple[PlaceBytes, ...]], ...]:
        """Name, scope and places of each memory that there is."""
        found = (
            ("hbm", "rank", self.hbm),
            ("ddr", "machine", self.ddr),
            ("ssd", "machine", self.ssd),
        )
        return tuple(each for each in found if each[2])


def ledger_of(plan: Plan) -> LedgerInfo | None:
    """The ledger of a plan; None without a placement, or where its Instance counts other bytes, as
    that of a plan made by an earlier version."""
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
    )


def assumed_of(model: Model, cluster: Cluster) -> str | None:
    """What is assumed of HBM and of host memory where nobody says, in a line; None for nothing."""
    most = max(rank.hbm_bytes for rank in cluster.ranks)
    told = [outside(model, cluster, most).assumed, assumed_ddr(model, cluster)]
    return "; ".join(each for each in told if each is not None) or None


def held_of(plan: Plan) -> Held | None:
    """What the plan's options hold; None where this version does not offer them."""
    names = [table.option for table in plan.tables]
    held = held_by(plan.model, plan.cluster, plan.profile, names)
    return held if held is not None and len(_rows(plan)) == len(held.ledger) else None


def is_charged(plan: Plan, held: Held) -> bool:
    """Whether the plan's Instance counts these bytes, those of HBM at some moment."""
    rows, instance = _rows(plan), plan.instance
    at = [held.ledger @ alive_at(moment) for moment in MOMENTS]
    kept = [held.ledger @ alive_outside_exchange(moment) for moment in MOMENTS]
    for index, resource in enumerate(instance.resources):
        if resource.name == "ssd_step":
            continue  # traffic, not bytes that stay
        use = instance.shard_use[rows, index]
        likely = {"ddr": [held.ddr], "ssd": [held.ssd]}.get(resource.name, at)
        alone = kept if ":" in resource.name else likely  # other collectives than its own
        pairs = zip(likely, alone, strict=True)
        if not any(bool(((use == each) | (use == other)).all()) for each, other in pairs):
            return False
    return True


def alive_at(moment: str) -> IntArray:
    """Which entries of shards are alive at a moment: 0 or 1, int64 array [entries]."""
    return alive(SHARD_ENTRIES, moment)


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
            for moment, everywhere in exchanged.items()
        }
        used = {moment: sum(entries.values()) for moment, entries in found.items()}
        fullest = max(used, key=lambda moment: used[moment])
        yield PlaceBytes(number, fullest, found[fullest], headroom, rank.hbm_bytes, used)


def _everywhere(plan: Plan) -> dict[str, dict[str, int]]:
    """What every rank holds of the exchange at each moment."""
    amounts = exchange_bytes(plan.model, plan.cluster.num_ranks)
    return {
        moment: _some({name: n for name, n in amounts.items() if moment in _ALIVE[name]})
        for moment in MOMENTS
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
    """The SSD of every machine: live rows, and what compaction lets stale ones grow to."""
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
    """Rows and buffers of every table in HBM."""
    placement, instance = plan.outcome.placement, plan.instance
    assert placement is not None
    stays = np.array([name in ROWS for name in SHARD_NAMES], dtype=np.int64)
    kinds = np.stack([stays, *((1 - stays) * alive_at(moment) for moment in MOMENTS)], axis=1)
    bytes_ = np.zeros((len(instance.shard_cost), kinds.shape[1]), dtype=np.int64)
    bytes_[_rows(plan)] = held.ledger @ kinds
    for table, placed in enumerate(plan.tables):
        blocks = instance.blocks_of(int(placement.options[table]))
        found = np.zeros(kinds.shape[1], dtype=np.int64)
        for index, ranks in zip(blocks, placement.ranks[table], strict=True):
            found += bytes_[position_entries(instance, instance.block(index), ranks)].sum(axis=0)
        if found.any():
            yield TableBytes(placed.name, int(found[0]), int(found[1:].max()))


def shards_at(plan: Plan, held: Held) -> dict[str, IntArray]:
    """Bytes of every entry of shards on each rank at each moment; int64 arrays [ranks, entries].

    Of those in exchange, where only the largest collective's count, each rank's largest.
    """
    whole, passing = ranks_of_rows(plan, held.ledger), np.isin(SHARD_NAMES, FOLLOW_ROWS)
    piles = np.stack([ranks_of_rows(plan, held.ledger, tables) for tables in collectives_of(plan)])
    found = {}
    for moment in MOMENTS:
        sums = (piles * (passing * alive_at(moment))).sum(axis=2)
        largest = piles[sums.argmax(axis=0), np.arange(len(whole))]
        found[moment] = np.where(passing, largest, whole) * alive_at(moment)
    return found


def collectives_of(plan: Plan) -> list[list[int]]:
    """Tables whose exchanges are in memory at the same time: all, or those of each collective."""
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
        Rows as of :class:`milp_planner.pricing.held.Held`.
    tables : sequence of int, optional
        Of these only.

    Returns
    -------
    int64 array [ranks, columns]
    """
    placement, instance = plan.outcome.placement, plan.instance
    assert placement is not None
    cost = np.zeros((len(instance.shard_cost), columns.shape[1]), dtype=np.int64)
    cost[_rows(plan)] = columns
    names = tuple(str(i) for i in range(columns.shape[1]))
    return compute_loads(replace(instance, phases=names, shard_cost=cost), placement, tables).cost


def _rows(plan: Plan) -> IntArray:
    """Shard entries of the chosen options in the plan's Instance, table after table."""
    placement, instance = plan.outcome.placement, plan.instance
    assert placement is not None
    ends = [(instance.option_blocks[o], instance.option_blocks[o + 1]) for o in placement.options]
    return np.concatenate(
        [np.arange(instance.block_shards[low], instance.block_shards[high]) for low, high in ends]
    )
