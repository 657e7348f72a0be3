"""Tables for which every rank is charged the load of the hottest one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from milp_planner.drawing.units import listed
from milp_planner.plans.display import NAMED
from milp_planner.plans.placement import rows_over
from milp_planner.pricing.job import traffic_of
from milp_planner.pricing.options import BY_MACHINE
from milp_planner.pricing.popularity import rank_factors

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan

EVEN = 1.05
"""Ranks count as evenly loaded up to this ratio of the hottest rank's load to the mean."""


def row_ranks(plan: Plan, index: int) -> int:
    """Number of ranks over which the rows of a placed table are split."""
    placed = plan.tables[index]
    if placed.kind == "hugectr":  # HugeCTR's cost model ignores skew
        return 1
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
        "even here; hot_ids or top_ids in the model tell which (`simulate` draws one case)."
    ]
