"""Where the hit ratios come from that a plan's prices rest on, and a sentence where to beware."""

from __future__ import annotations

import numpy as np

from milp_planner.costs.hit_ratio.estimate import Source, hit_ratios, tier_of
from milp_planner.placement import Plan

NAMED = 3
"""Tables a sentence names."""


def hit_sources(plan: Plan) -> dict[str, Source]:
    """Source of the hit ratio of every placed table whose price rests on one, by its name.

    A price rests on it where the profile's curve is over hit ratios or replaced by them, and where
    a prefetch pays for misses.
    """
    found: dict[str, Source] = {}
    workload, profile = plan.model.workload, plan.profile
    for table, placed in zip(plan.model.tables, plan.tables, strict=False):
        curve = profile.hybrid
        if placed.mode == "CACHING":
            curve = profile.caching if placed.kind == "dynamicemb" else profile.uvm_caching
        prefetched = placed.mode == "CACHING" and workload.prefetch_pipeline
        if placed.mode in ("HYBRID", "CACHING") and (prefetched or curve.follows_hits):
            lookups = workload.batch_per_rank * table.lookups_per_sample * plan.cluster.num_ranks
            tier = tier_of(table, placed.mode, float(lookups))
            ratio = np.array([float(placed.cache_ratio)])
            found[table.name] = hit_ratios(table.access, table.rows, ratio, tier).sources[0]
    return found


def hit_warnings(plan: Plan) -> list[str]:
    """A sentence for each source that is no checked formula; measured curves need none."""
    sources, told = hit_sources(plan), []
    for source, what in (
        ("table", "Hit ratios beyond the region of the formulas, from the simulator's table"),
        ("unchecked", "Hit ratios outside the region that was checked (see `simulate`)"),
    ):
        names = [name for name, found in sources.items() if found == source]
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            told.append(f"{what}: {', '.join(names[:NAMED])}{more}")
    return told
