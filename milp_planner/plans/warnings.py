"""What to beware of in a plan: hit ratios its prices rest on, and widths asked for in vain."""

from __future__ import annotations

import numpy as np

from milp_planner.plans.placement import Plan
from milp_planner.pricing.hit_ratio.estimate import Source, hit_ratios, tier_of
from milp_planner.pricing.options import BY_COLUMN, TIERED
from milp_planner.pricing.storage import held_ratio

NAMED = 3
"""Tables a sentence names."""


def hit_ratio_of(plan: Plan, index: int) -> tuple[float, Source]:
    """Hit ratio of one placed table in HYBRID or CACHING as pricing has it, and its source."""
    table, placed, ranks = plan.model.tables[index], plan.tables[index], plan.cluster.num_ranks
    lookups = plan.model.workload.batch_per_rank * table.lookups_per_sample * ranks
    x, ratio = placed.cache_ratio, np.array([float(placed.cache_ratio)])
    if table.kind == "dynamicemb":
        slots = (x.numerator, x.denominator)
        ratio = np.atleast_1d(held_ratio(table.rows, ranks, table.bucket_capacity, slots))
    tier = tier_of(table, placed.mode, float(lookups))
    found = hit_ratios(table.access, table.rows, ratio, tier)
    return float(found.values[0]), found.sources[0]


def hit_sources(plan: Plan) -> dict[str, Source]:
    """Source of the hit ratio of every placed table whose price rests on one, by its name.

    A price rests on it where the profile's curve is over hit ratios or replaced by them, and where
    a prefetch pays for misses.
    """
    found: dict[str, Source] = {}
    workload, profile = plan.model.workload, plan.profile
    for index, placed in enumerate(plan.tables):
        curve = profile.hybrid
        if placed.mode == "CACHING":
            curve = profile.caching if placed.kind == "dynamicemb" else profile.uvm_caching
        prefetched = placed.mode == "CACHING" and workload.prefetch_pipeline
        if placed.mode in TIERED and (prefetched or curve.follows_hits):
            found[placed.name] = hit_ratio_of(plan, index)[1]
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


def width_warnings(plan: Plan) -> list[str]:
    """A sentence about placed tables whose ``column_widths`` had no effect: none could be used.

    A width may be too narrow for the number of ranks, or the sharding types that cut columns are
    not offered. Pinned tables ask for one option, which is no surprise.
    """
    first, names = plan.instance.table_options, plan.instance.option_names
    unused = [
        placed.name
        for index, (table, placed) in enumerate(zip(plan.model.tables, plan.tables, strict=False))
        if table.constraints.column_widths is not None
        and table.constraints.pin is None
        and not any(
            name.startswith(tuple(BY_COLUMN)) for name in names[first[index] : first[index + 1]]
        )
    ]
    if not unused:
        return []
    more = f" and {len(unused) - NAMED} more" if len(unused) > NAMED else ""
    named = ", ".join(unused[:NAMED]) + more
    return [f"No column shard of the asked-for column_widths is possible on this cluster: {named}"]
