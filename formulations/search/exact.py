"""The exact model as part of the search: over some options, below a limit, or repairing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
from formulations.search.context import Context, Either
from formulations.solvers.answer import Answer, Found
from formulations.solvers.cpsat import Asked, Use, solve_cpsat


def columns_of_whole(context: Context, keep: np.ndarray) -> int:
    """About how many columns the whole model has."""
    return int(keep.sum()) * (1 + context.instance.num_ranks // 2)


def solve_whole(
    context: Context, work: float, workers: int, stale: Callable[[], bool] = lambda: False
) -> Answer:
    """Search the whole model, over the options left, for a plan better than the best.

    Parameters
    ----------
    work : float
        Units of the clock.
    workers : int
    stale : callable
        Asked now and then whether to end early: there is a better model to solve by now.
    """
    upper = context.objective
    parts = Parts(keep=context.keep, limit=upper, ordered=True, check=context.clock.check)
    model = build(context.instance, by_rank(context.instance), parts)
    hint = None if context.best is None else renamed(model.columns.candidates, context.best)
    limits = context.limits(work, context.settings.seed, workers)
    limits = replace(limits, stop=Either(context.settings.stop, lambda: stale() or context.over()))
    answer = _solve(context, model, limits, hint, Use.CLAIMS)
    _learn(context, answer, upper)
    return answer


def improve_whole(context: Context, work: float, seed: int) -> None:
    """CP-SAT's own large-neighbourhood search from the best plan, on the whole model."""
    if context.best is None:
        return
    keep = context.keep.copy()
    keep[context.best.options] = True
    parts = Parts(keep=keep, limit=context.objective, cuts=False)
    model = build(context.instance, by_rank(context.instance), parts)
    limits = context.limits(work, seed)
    _solve(context, model, limits, context.best, Use.IMPROVE)


def _solve(
    context: Context, model: Model, limits: Limits, base: Placement | None, use: Use
) -> Answer:
    """Solve from a placement; every plan found is offered."""

    def offer(values: IntArray) -> None:
        context.offer(decode(model, values), "cpsat")

    hint = None if base is None else encode(model, base)
    answer = solve_cpsat(model.linear, limits, hint, Asked(use, on_values=offer))
    context.spend(answer.work)
    return answer


def _learn(context: Context, answer: Answer, upper: int | None) -> None:
    """What the whole model, with every option that matters, proved up to ``upper``."""
    source = BoundSource("cpsat", exact=True)
    if answer.status == Found.INFEASIBLE and upper is None:
        context.refuted = source
    elif answer.status == Found.INFEASIBLE:
        context.lift(upper, source)
    elif answer.bound is not None:
        context.lift(answer.bound if upper is None else min(upper, answer.bound), source)
