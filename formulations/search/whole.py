"""The exact model as a part of the search: when it runs, over what, when it begins anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from formulations.clock import OutOfTime
from formulations.instance import IntArray
from formulations.model.parts import Parts
from formulations.search.context import Context
from formulations.search.question import WHOLE, Reply, ask


class Whole:
    """The exact model over the options left.

    Parameters
    ----------
    context : Context

    Attributes
    ----------
    small : bool
        Whether the instance is so small that the model gets all workers from the start.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._parameters = context, context.parameters
        clock, chosen = context.clock, context.parameters
        self._patient = clock.now() + clock.share(chosen.exact_first)
        self.small, self._hopeless = self._few(), False
        self._whole_of = int(context.keep.sum())

    def _few(self) -> bool:
        columns = columns_of_whole(self._context, self._context.keep)
        return columns <= min(self._parameters.small_columns, self._parameters.whole_columns)

    @property
    def first(self) -> bool:
        """Whether the exact model has the dual side to itself: on small instances, unless it gave
        that up."""
        return self.small and not self._hopeless

    @property
    def patient_no_more(self) -> bool:
        """Whether the exact model has had its time, or gave up."""
        return self._hopeless or self._context.clock.now() >= self._patient

    def give_up(self) -> bool:
        """Give up the dual side if, after a while, the plan is still far above the bound; for good,
        and asked by the dual side alone. Returns whether it is given up."""
        if self.first and self._context.clock.now() >= self._patient:
            self._hopeless = self._context.known.above(self._parameters.far)
        return not self.first

    def large(self) -> bool:
        """Whether too many options are left for the exact model."""
        context = self._context
        return columns_of_whole(context, context.keep) > self._parameters.whole_columns

    def news(self) -> bool:
        """Whether enough options were dropped since the last run that a proof may come at once."""
        context, chosen = self._context, self._parameters
        value = context.objective
        keep = context.keep if value is None else context.left_below(value)
        few = columns_of_whole(context, keep) <= chosen.small_columns
        return few and int(keep.sum()) < chosen.news_left * self._whole_of

    def run(self, amount: float) -> bool:
        """The exact model over the options left. It restarts when a better plan leaves far fewer
        options."""
        context, chosen = self._context, self._parameters
        context.drop()
        if context.known.proved or self.large():
            return True
        known, alone = context.objective, self.first
        options = self._whole_of = int(context.keep.sum())

        def stale() -> bool:
            now = context.known
            value = now.objective
            if alone and self.give_up():
                return True
            if now.proved or value is None or value == known:
                return now.proved
            return int(context.left_below(value).sum()) < chosen.news_left * options

        workers = context.workers if self._few() and not self._hopeless else 1
        try:
            return not solve_whole(context, amount, workers, stale).answer.done
        except OutOfTime:
            return False


def columns_of_whole(context: Context, keep: NDArray[np.bool_]) -> int:
    """Approximate number of columns of the whole model."""
    return int(keep.sum()) * (1 + context.instance.num_ranks // 2)


def solve_whole(context: Context, work: float, workers: int, stale: Callable[[], bool]) -> Reply:
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

    def lift(bound: int) -> None:
        """Record a bound, but keep it below the plan: the final answer decides, in integers,
        whether the bound reaches the plan."""
        value = context.objective
        context.lift(bound if value is None else min(value - 1, bound), WHOLE.source)

    stop = context.stop_when(lambda: stale() or context.over())
    question = replace(WHOLE, asked=replace(WHOLE.asked, on_bound=lift))
    keep = known.keep.copy()
    if known.best is not None:
        keep[known.best.options] = True  # from which CP-SAT starts
    parts = Parts(keep, limit=known.objective, check=context.clock.check)
    limits = replace(context.limits(work, context.settings.seed, workers), stop=stop)
    offer = partial(context.offer, source="cpsat")
    reply = ask(question, context.instance, limits, parts, known.best, offer)
    context.clock.spend(reply.answer.work)
    _learn(context, reply, known.objective)
    return reply


def place(context: Context, options: IntArray, work: float) -> None:
    """Look for the best places for a choice of options; offers every better plan.

    Parameters
    ----------
    context : Context
    options : int64 array [tables]
    work : float
        Units of the clock.
    """
    keep = np.zeros(context.instance.num_options, dtype=bool)
    keep[options] = True
    if columns_of_whole(context, keep) > context.parameters.small_columns:
        return
    parts = Parts(keep, limit=context.objective, check=context.clock.check)
    limits = context.limits(work, context.settings.seed)
    offer = partial(context.offer, source="cpsat")
    context.clock.spend(ask(WHOLE, context.instance, limits, parts, take=offer).answer.work)


def _learn(context: Context, reply: Reply, upper: int | None) -> None:
    """Record what the whole model, with all options that matter, proved up to ``upper``."""
    if reply.infeasible and upper is None:
        context.state.refute(reply.source)
    elif reply.infeasible:
        context.lift(upper, reply.source)
    elif reply.bound is not None:
        bound = reply.bound if upper is None else min(upper, reply.bound)
        context.lift(bound, reply.source)
