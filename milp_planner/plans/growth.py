"""The largest batch, and the hottest rank, for which a plan's memory suffices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.instance import IntArray
from milp_planner.files import Facts
from milp_planner.plans.ledger import (
    LedgerInfo,
    bytes_on,
    collectives_of,
    hbm_of,
    held_of,
    ledger_of,
    ranks_of_rows,
)
from milp_planner.plans.placement import Plan
from milp_planner.pricing.entries import alive, moments_of
from milp_planner.pricing.options import WHOLE_ROWS
from milp_planner.pricing.shards import Held

MOST_TIMES = 64
"""Batches larger than this multiple of the workload's are not considered."""
NAMED = 3
"""Most tables for which another sharding is suggested because they grow with a burst."""


@dataclass(frozen=True)
class Overflow:
    """The first rank that overflows when the batch or the burst grows."""

    now: float
    """The value that was planned for."""
    at: float
    """The largest value at which every rank still keeps its headroom."""
    rank: int


@dataclass(frozen=True)
class GrowthInfo(Facts):
    """Limits that a plan's HBM sets; None if nothing ever overflows."""

    batch: Overflow | None
    """Global batch, in samples."""
    burst: Overflow | None
    """Ids that a rank receives for its row-wise shards in one step, over the mean of all ranks."""
    tables: tuple[str, ...]
    """Row-wise tables that grow with the burst on that rank, the largest first."""
    instead: tuple[str, ...]
    """Sharding types that these tables allow and whose load a burst does not change."""
    outside_follows: bool = True
    """Whether memory outside the embeddings grows with the batch, because the model states bytes
    per sample."""


def growth_of(plan: Plan) -> GrowthInfo | None:
    """Batch and burst at which the first rank overflows; None without a ledger of HBM."""
    found = ledger_of(plan)
    held = None if found is None else held_of(plan)
    if found is None or held is None or not found.hbm:
        return None
    burst, tables = _burst(plan, held, found)
    follows = bool(plan.cluster.fixed_hbm(plan.model).get("dense_activations"))
    return GrowthInfo(_batch(plan), burst, tables, _instead(plan, tables), follows)


def _batch(plan: Plan) -> Overflow | None:
    """The largest batch that fits with the same options and places: memory grows almost in
    proportion to the batch, so that the line between two batches mostly says the next to try."""
    ranks, now = plan.cluster.num_ranks, plan.model.workload.batch_per_rank
    fits, over = 1, MOST_TIMES * now
    (room, first), (less, rank) = _least_room(plan, fits), _least_room(plan, over)
    if less >= 0:
        return None
    if room < 0:
        return Overflow(now * ranks, 0, first)
    steps = 0
    while over - fits > 1:
        share = room / (room - less) if steps % 3 < 2 else 0.5
        batch = min(max(fits + int((over - fits) * share), fits + 1), over - 1)
        left, place = _least_room(plan, batch)
        if left < 0:
            over, less, rank = batch, left, place
        else:
            fits, room = batch, left
        steps += 1
    return Overflow(now * ranks, fits * ranks, rank)


def _least_room(plan: Plan, batch: int) -> tuple[int, int]:
    """Bytes by which the fullest rank exceeds its limit at a number of samples, and that rank."""
    workload = plan.model.workload.model_copy(update={"batch_per_rank": batch})
    changed = replace(plan, model=plan.model.model_copy(update={"workload": workload}))
    held = held_of(changed)
    assert held is not None
    return min((each.room, each.place) for each in hbm_of(changed, held))


def _burst(plan: Plan, held: Held, found: LedgerInfo) -> tuple[Overflow | None, tuple[str, ...]]:
    """The least load factor at which a rank overflows, and the tables that cause it.

    At load factor k (load over the mean), the part of a shard's memory that is proportional to its
    load is k/(load factor in the worst batch) times as large. So each rank's largest k at each
    moment has a closed form.
    """
    follows = held.follows.astype(np.float64)
    mean = (follows / held.peak[:, None]).round().astype(np.int64)
    best: tuple[float, float, int] | None = None
    for tables in collectives_of(plan):
        now, even = (ranks_of_rows(plan, each, tables) for each in (held.follows, mean))
        for moment in moments_of(plan.model.grows):
            ours, unit = now @ alive(moment), even @ alive(moment)
            room = np.array([p.whole - p.headroom - p.moments[moment] for p in found.hbm])
            for rank in np.flatnonzero(unit).tolist():
                at = max(0.0, float((room[rank] + ours[rank]) / unit[rank]))
                if best is None or at < best[1]:
                    best = (float(ours[rank] / unit[rank]), at, rank)
    if best is None or best[1] >= plan.cluster.num_ranks:  # one rank receives every id
        return None, ()
    return Overflow(*best), _growing(plan, mean, best[2])


def _growing(plan: Plan, mean: IntArray, rank: int) -> tuple[str, ...]:
    """Tables of a rank whose memory grows with its load, the largest first."""
    sizes = dict(zip([t.name for t in plan.tables], bytes_on(plan, mean, rank), strict=True))
    return tuple(name for name in sorted(sizes, key=lambda n: -sizes[n]) if sizes[name])


def _instead(plan: Plan, tables: tuple[str, ...]) -> tuple[str, ...]:
    """Sharding types with whole rows that all of the tables allow."""
    first, names = plan.instance.table_options, plan.instance.option_names
    offered = [
        {name.partition("/")[0].partition(":")[0] for name in names[first[i] : first[i + 1]]}
        for i, table in enumerate(plan.tables)
        if table.name in tables[:NAMED]
    ]
    return tuple(sorted(WHOLE_ROWS.intersection(*offered))) if offered else ()
