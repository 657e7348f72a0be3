"""The exact model as part of the search: over some options, below a limit, or repairing."""

from __future__ import annotations

import numpy as np

from formulations.clock import Limits
from formulations.instance import IntArray
from formulations.model.build import Model, Parts, build
from formulations.model.decode import decode
from formulations.model.encode import encode
from formulations.model.partition import by_rank
from formulations.model.symmetry import renamed
from formulations.result.outcome import BoundSource
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.state import load_of, objective_of
from formulations.solvers.answer import Answer, Found
from formulations.solvers.cpsat import Asked, Use, solve_cpsat


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
    parts = Parts(keep=keep, limit=target, repair=True, soft=True)
    model = build(context.instance, by_rank(context.instance), parts)
    limits = context.limits(work, context.settings.seed, context.settings.workers)
    answer = solve_cpsat(model.linear, limits, encode(model, base), Asked(Use.PLANS))
    context.spend(answer.work)
    if answer.values is None:
        return base
    placement = decode(model, answer.values)
    context.offer(placement, "cpsat")
    return placement


def solve_whole(context: Context, base: Placement, work: float, keep: np.ndarray) -> Answer:
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
    counts = keep is context.keep
    # Cuts and rank order serve a proof; plans are found sooner without.
    parts = Parts(keep=keep, limit=upper, cuts=counts, ordered=counts)
    model = build(context.instance, by_rank(context.instance), parts)
    limits = context.limits(work, context.settings.seed, context.settings.workers)
    hint = renamed(model.columns.candidates, base) if counts else base
    answer = _solve(context, model, limits, hint, Use.CLAIMS if counts else Use.PLANS)
    if counts:
        _learn(context, answer, upper)
    return answer


def improve_whole(context: Context, work: float, keep: np.ndarray, seed: int) -> None:
    """CP-SAT's own large-neighbourhood search from the best plan, on the whole model."""
    if context.best is None:
        return
    keep = keep.copy()
    keep[context.best.options] = True
    parts = Parts(keep=keep, limit=context.objective, cuts=False)
    model = build(context.instance, by_rank(context.instance), parts)
    limits = context.limits(work, seed, context.settings.workers)
    _solve(context, model, limits, context.best, Use.IMPROVE)


def _solve(context: Context, model: Model, limits: Limits, base: Placement, use: Use) -> Answer:
    """Solve from a placement; every plan found is offered."""

    def offer(values: IntArray) -> None:
        context.offer(decode(model, values), "cpsat")

    answer = solve_cpsat(model.linear, limits, encode(model, base), Asked(use, on_values=offer))
    context.spend(answer.work)
    return answer


def _learn(context: Context, answer: Answer, upper: int | None) -> None:
    """What the whole model, with every option that matters, proved up to ``upper``."""
    source = BoundSource("cpsat", exact=True)
    if context.float_filtered:
        source = BoundSource("cpsat after highs filter", exact=False)
    if answer.status == Found.INFEASIBLE and upper is None:
        context.refuted = source
    elif answer.status == Found.INFEASIBLE:
        context.lift(upper, source)
    elif answer.bound is not None:
        context.lift(answer.bound if upper is None else min(upper, answer.bound), source)
