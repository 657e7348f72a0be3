"""The exact model as a part of the search: over some options, below a limit, or repairing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from formulations.clock import Limits
from formulations.cpsat import Answer, Asked, Found, Use, solve_cpsat
from formulations.instance import IntArray
from formulations.model.build import Model, build
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.model.symmetry import renamed
from formulations.result.outcome import BoundSource
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.state import Known

_SOURCE = BoundSource("cpsat", exact=True)


def columns_of_whole(context: Context, keep: np.ndarray) -> int:
    """Approximate number of columns of the whole model."""
    return int(keep.sum()) * (1 + context.instance.num_ranks // 2)


def solve_whole(context: Context, work: float, workers: int, stale: Callable[[], bool]) -> Answer:
    """Search the whole model, over the options left, for a plan better than the best one known.

    Parameters
    ----------
    work : float
        Units of the clock.
    workers : int
    stale : callable
        Called now and then; returns whether to end early, because a smaller model can be solved by
        now.
    """
    known = context.known
    upper, best = known.objective, known.best
    parts = Parts(_with(known), limit=upper, ordered=True, check=context.clock.check)
    model = build(context.instance, by_rank(context.instance), parts)
    hint = None if best is None else renamed(model.columns.candidates, best)
    stop = context.stop_when(lambda: stale() or context.over())
    limits = replace(context.limits(work, context.settings.seed, workers), stop=stop)

    def lift(bound: int) -> None:
        """Record a bound, but keep it below the plan: the final answer decides, in integers,
        whether the bound reaches the plan."""
        value = context.objective
        context.lift(bound if value is None else min(value - 1, bound), _SOURCE)

    offer = partial(context.offer, source="cpsat")
    answer = _solve(context, model, limits, hint, Asked(on_bound=lift), offer)
    _learn(context, answer, upper)
    return answer


def improve_whole(context: Context, work: float, seed: int) -> None:
    """CP-SAT's own large-neighbourhood search from the best plan, on the whole model."""
    known = context.known
    upper, best = known.objective, known.best
    if best is None:
        return
    parts = Parts(_with(known), limit=upper, cuts=False)
    model = build(context.instance, by_rank(context.instance), parts)
    limits = context.limits(work, seed)
    offer = partial(context.offer, source="cpsat")
    _solve(context, model, limits, best, Asked(Use.IMPROVE), offer)


def place(context: Context, options: IntArray, work: float) -> None:
    """Place a choice of options; with so few columns, CP-SAT takes about a second."""
    keep = np.zeros(context.instance.num_options, dtype=bool)
    keep[options] = True
    if columns_of_whole(context, keep) > context.parameters.whole_columns:
        return
    upper = None if context.objective is None else context.objective - 1
    parts = Parts(keep, limit=upper, ordered=True, check=context.clock.check)
    model = build(context.instance, by_rank(context.instance), parts)
    offer = partial(context.offer, source="cpsat")
    limits = context.limits(work, context.settings.seed)
    _solve(context, model, limits, None, Asked(Use.PLANS), offer)


def _with(known: Known) -> np.ndarray:
    """The options left, together with those of the best plan, from which CP-SAT starts."""
    keep = known.keep.copy()
    if known.best is not None:
        keep[known.best.options] = True
    return keep


def _solve(
    context: Context,
    model: Model,
    limits: Limits,
    base: Placement | None,
    asked: Asked,
    take: Callable[[Placement], object],
) -> Answer:
    """Solve from a placement; every plan found is offered to the context."""
    hint = None if base is None else encode(model, base)
    asked = replace(asked, on_values=lambda values: take(decode(model, values)))
    answer = solve_cpsat(model.linear, limits, hint, asked)
    context.spend(answer.work)
    return answer


def _learn(context: Context, answer: Answer, upper: int | None) -> None:
    """Record what the whole model, with all options that matter, proved up to ``upper``."""
    if answer.status == Found.INFEASIBLE and upper is None:
        context.state.refute(_SOURCE)
    elif answer.status == Found.INFEASIBLE:
        context.lift(upper, _SOURCE)
    elif answer.bound is not None:
        context.lift(answer.bound if upper is None else min(upper, answer.bound), _SOURCE)
