"""What a plan's prices take on trust: hot rows, hit ratios, widths that could not be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milp_planner.drawing.units import NAMED, listed
from milp_planner.plans.placement import rows_over
from milp_planner.pricing.hit_ratios import Source, hit_ratios, policy_of
from milp_planner.pricing.job import traffic_of
from milp_planner.pricing.options import BY_COLUMN, BY_MACHINE, TIERED
from milp_planner.pricing.popularity import rank_factors
from milp_planner.pricing.shared_caches import Cached, factors
from milp_planner.pricing.storage import held_ratio

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan

EVEN = 1.05
"""Ranks count as evenly loaded up to this ratio of the hottest rank's load to the mean."""


def row_ranks(plan: Plan, index: int) -> int:
    """Number of ranks over which the rows of a placed table are split."""
    placed = plan.tables[index]
    if placed.sharding_type == "row_wise":
        return plan.cluster.num_ranks
    if placed.sharding_type in BY_MACHINE:
        return rows_over(placed)
    return 1


def charged_everywhere(plan: Plan) -> dict[str, float]:
    """Load of the hottest rank over the mean, for each table that charges every rank with it.

    Pricing does so for hot rows whose ids the model does not name (see
    :func:`milp_planner.pricing.popularity.rank_factors`). The largest comes first; loads up to
    :data:`EVEN` are left out.
    """
    traffic = traffic_of(plan.model, plan.cluster.num_ranks, needs_distinct=False)
    found: dict[str, float] = {}
    for index, placed in enumerate(plan.tables):
        table, ranks = plan.model.tables[index], row_ranks(plan, index)
        rule, dedup = placed.dist_type or "continuous", float(traffic.dedup_lookups[index])
        factors = rank_factors(table.access, table.rows, ranks, rule, dedup, table.index_type)
        if len(factors) == 1 and factors[0] > EVEN:
            found[placed.name] = factors[0]
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def hot_warnings(plan: Plan) -> list[str]:
    """A sentence about tables whose hot ids are unknown, so that their ranks only look even."""
    found = charged_everywhere(plan)
    if not found:
        return []
    named = [f"{name} ({factor:.2f} times the mean)" for name, factor in found.items()]
    return [
        "Hot ids unknown, so every rank is charged the load of the hottest one: "
        f"{listed(named, NAMED)}. One rank will be that busy and the others less, though all look "
        "even here; hot_ids or top_ids in the model tell which."
    ]


def hit_ratio_of(plan: Plan, index: int) -> tuple[float, Source]:
    """Hit ratio that pricing assumes for a placed table with several tiers, and its source."""
    table, placed, ranks = plan.model.tables[index], plan.tables[index], plan.cluster.num_ranks
    lookups = plan.model.workload.batch_per_rank * table.lookups_per_sample * ranks
    x, ratio = placed.cache_ratio, np.array([float(placed.cache_ratio)])
    if table.kind == "dynamicemb":
        slots = (x.numerator, x.denominator)
        ratio = np.atleast_1d(held_ratio(table.rows, ranks, table.bucket_capacity, slots))
    policy = policy_of(table, placed.mode, float(lookups))
    found = hit_ratios(table.access, table.rows, ratio, policy)
    return float(found.values[0]), found.sources[0]


def hit_sources(plan: Plan) -> dict[str, Source]:
    """Source of the hit ratio of every placed table whose price depends on one, by table name.

    A price depends on the hit ratio if the profile's curve is over hit ratios or is replaced by
    them, or if a prefetch pays for misses.
    """
    found: dict[str, Source] = {}
    workload, profile = plan.model.workload, plan.profile
    for index, (table, placed) in enumerate(zip(plan.model.tables, plan.tables, strict=False)):
        curve = profile.hybrid
        if placed.mode == "CACHING":
            curve = profile.caching if placed.kind == "dynamicemb" else profile.uvm_caching
        prefetched = placed.mode == "SSD" or (
            placed.mode == "CACHING" and (workload.prefetch_pipeline or table.key_value.virtual)
        )
        if placed.mode in TIERED and (prefetched or curve.follows_hits):
            found[placed.name] = hit_ratio_of(plan, index)[1]
    return found


def hit_warnings(plan: Plan) -> list[str]:
    """A sentence for each source that is not a checked formula or a measured curve."""
    sources, sentences = hit_sources(plan), []
    for source, what in (
        ("table", "Hit ratios beyond the region of the formulas, from the simulator's table"),
        ("unchecked", "Hit ratios outside the region that was checked (docs/trust/hit-ratio.md)"),
    ):
        names = [name for name, found in sources.items() if found == source]
        if names:
            sentences.append(f"{what}: {listed(names, NAMED)}")
    return sentences


def cache_warnings(plan: Plan) -> list[str]:
    """A sentence about cached tables whose kernels run with other load factors than planned."""
    cached = {
        placed.name: Cached(
            placed.sharding_type, placed.column_width, placed.cache_ratio,
            tuple(rank for block in placed.ranks for rank in block),
        )
        for placed in plan.tables
        if placed.kind == "torchrec" and placed.mode == "CACHING"
    }  # fmt: skip
    named = [
        f"{name} ({float(cached[name].ratio):g} becomes {' or '.join(f'{r:g}' for r in runs)})"
        for name, ratios in factors(plan.model, cached).items()
        if (runs := [float(ratio) for ratio in ratios]) != [float(cached[name].ratio)]
    ]
    if not named:
        return []
    return [
        f"TorchRec gives the cached tables of a kernel the mean of their ratios: "
        f"{listed(named, NAMED)}; export says what that costs, and a cache_ratios of one value "
        "in the workload avoids it"
    ]


def width_warnings(plan: Plan) -> list[str]:
    """A sentence about placed tables none of whose ``column_widths`` could be used.

    A width may be too narrow for the number of ranks, or the table may not allow sharding types
    that cut columns. Pinned tables are not mentioned.
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
    named = listed(unused, NAMED)
    return [f"No column shard of the requested column_widths is possible on this cluster: {named}"]
