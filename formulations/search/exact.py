"""The whole placement as one neighbourhood: exact when CP-SAT finishes."""

from __future__ import annotations

import numpy as np

from formulations.aggregate.cpsat import CpsatResult, solve_cpsat
from formulations.outcome import BoundSource
from formulations.placement import Placement
from formulations.search.context import Context
from formulations.search.neighbourhood import Neighbourhood, Part
from formulations.search.state import load_of


def whole_model(context: Context, base: Placement, keep: np.ndarray) -> Neighbourhood:
    """Every table and rank open, with the options given."""
    instance = context.instance
    part = Part(
        range(instance.num_tables),
        np.ones(instance.num_ranks, dtype=bool),
        keep,
        context.objective,
    )
    rest = load_of(instance, context.costs, base, [])
    return Neighbourhood(instance, context.costs, base, rest, part)


def columns_of_whole(context: Context) -> int:
    """About how many columns the whole model has."""
    instance = context.instance
    return int(context.keep.sum()) * (1 + instance.num_ranks // 2)


def solve_whole(context: Context, base: Placement, work: float, seed: int) -> CpsatResult:
    """Search the whole model for a better plan; its bound counts when no plan beats it."""
    neighbourhood = whole_model(context, base, context.keep)
    upper = context.objective
    result = solve_cpsat(
        neighbourhood.model,
        context.limits(work, seed, context.settings.workers),
        neighbourhood.hint(),
    )
    context.spend(result.work)
    if result.values is not None:
        context.offer(neighbourhood.placement(result.values), "cpsat")
    source = BoundSource("cpsat", exact=True)
    if context.float_filtered:
        source = BoundSource("cpsat after highs filter", exact=False)
    if result.status == "infeasible" and upper is None:
        context.refuted = source
    elif result.status == "infeasible":
        context.lift(upper, source)
    elif result.bound is not None:
        context.lift(result.bound if upper is None else min(upper, result.bound), source)
    return result
