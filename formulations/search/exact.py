"""The whole placement as one neighbourhood: exact when CP-SAT finishes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.aggregate.cpsat import CpsatResult, Limits, solve_cpsat
from formulations.instance import IntArray
from formulations.outcome import BoundSource
from formulations.placement import Placement
from formulations.search.context import Context
from formulations.search.neighbourhood import Neighbourhood, Part
from formulations.search.state import load_of, objective_of


def whole_model(
    context: Context, base: Placement, keep: np.ndarray, limit: int | None, repair: bool = False
) -> Neighbourhood:
    """Every table and rank open, with the options given and plans of at most a limit."""
    instance = context.instance
    everywhere = np.ones(instance.num_ranks, dtype=bool)
    part = Part(range(instance.num_tables), everywhere, keep, limit, repair)
    rest = load_of(instance, context.costs, base, [])
    return Neighbourhood(instance, context.costs, base, rest, part)


def columns_of_whole(context: Context, keep: np.ndarray) -> int:
    """About how many columns the whole model has."""
    return int(keep.sum()) * (1 + context.instance.num_ranks // 2)


def repair_whole(
    context: Context, base: Placement, work: float, keep: np.ndarray, target: int
) -> Placement:
    """Lower what a placement has beyond capacities and a target, in the whole model.

    Returns
    -------
    Placement
        The least overfull one found; offered as a plan.
    """
    neighbourhood = whole_model(context, base, keep, target, repair=True)
    limits = context.limits(work, context.settings.seed, context.settings.workers)
    result = solve_cpsat(neighbourhood.model, limits, neighbourhood.hint())
    context.spend(result.work)
    if result.values is None:
        return base
    placement = neighbourhood.placement(result.values)
    context.offer(placement, "cpsat")
    return placement


def solve_whole(context: Context, base: Placement, work: float, keep: np.ndarray) -> CpsatResult:
    """Search the whole model, over some options, for a plan better than the best.

    Parameters
    ----------
    base : Placement
        The hint. Plans as dear as it count too, even where the best one is cheaper: CP-SAT finds
        its way down from a plan more easily than a first plan below a tight limit.
    work : float
        Seconds, or deterministic work.
    keep : bool array [options]
        What is proved counts when these are all the options a better plan may use.
    """
    upper = context.objective
    if upper is not None and base is not context.best:
        load = load_of(context.instance, context.costs, base, range(context.instance.num_tables))
        upper = max(upper, objective_of(context.instance, load))
    neighbourhood = whole_model(context, base, keep, upper)
    limits = context.limits(work, context.settings.seed, context.settings.workers)
    result = _solve(context, neighbourhood, limits)
    if keep is context.keep:
        _learn(context, result, upper)
    return result


def improve_whole(context: Context, work: float, keep: np.ndarray, seed: int) -> None:
    """CP-SAT's own large-neighbourhood search from the best plan, on the whole model."""
    if context.best is None:
        return
    keep = keep.copy()
    keep[context.best.options] = True
    neighbourhood = whole_model(context, context.best, keep, context.objective)
    limits = context.limits(work, seed, context.settings.workers)
    _solve(context, neighbourhood, replace(limits, improve=True))


def _solve(context: Context, neighbourhood: Neighbourhood, limits: Limits) -> CpsatResult:
    """Solve from the hint; every plan found is offered."""

    def offer(values: IntArray) -> None:
        context.offer(neighbourhood.placement(values), "cpsat")

    result = solve_cpsat(neighbourhood.model, limits, neighbourhood.hint(), offer)
    context.spend(result.work)
    if result.values is not None:
        offer(result.values)
    return result


def _learn(context: Context, result: CpsatResult, upper: int | None) -> None:
    """What the whole model, with every option that matters, proved below ``upper``."""
    source = BoundSource("cpsat", exact=True)
    if context.float_filtered:
        source = BoundSource("cpsat after highs filter", exact=False)
    if result.status == "infeasible" and upper is None:
        context.refuted = source
    elif result.status == "infeasible":
        context.lift(upper, source)
    elif result.bound is not None:
        context.lift(result.bound if upper is None else min(upper, result.bound), source)
