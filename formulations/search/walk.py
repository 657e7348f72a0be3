"""Several walkers side by side: target-driven first, restarted when stuck."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from formulations.bounds.own import own_cost
from formulations.instance import Objective
from formulations.search.context import Context
from formulations.search.lns import Walker
from formulations.search.parts import Sizes
from formulations.search.starts import Start

#: Steps without any improvement after which a walker turns to something else.
_PATIENCE = 25
#: A target that is out of reach is eased by this factor.
_EASE = 1.005
#: A best plan this far above what a packed choice promises is not worth descending from.
_FAR = 1.1
#: Nor is one with an option that alone costs this share of the promise.
DEAR = 1.02
#: Overflow up to which a packed choice is repaired rather than the best plan improved.
_REPAIRABLE = 1.0


def walk(
    context: Context, starts: Sequence[Start], until: float, work: float, turn: int = 0
) -> None:
    """Improve the starts (and the best plan) until a time, an amount of work, or a proof.

    One walker a worker: the first descends from the best plan, the others aim packed choices at
    what they promise.

    Parameters
    ----------
    starts : sequence of Start
        Most promising first.
    until : float
        Seconds on the clock.
    work : float
        Deterministic work to spend.
    turn : int
        Other turns start from other places.
    """
    end = context.work + work
    workers = max(1, context.settings.workers)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            _run(context, starts, index + turn * workers, until, end)
        except BaseException as error:  # handed to the caller's thread below
            errors.append(error)

    if workers == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def _run(context: Context, starts: Sequence[Start], index: int, until: float, end: float) -> None:
    round_ = index
    while not _over(context, until, end):
        seed = context.settings.seed * 1009 + round_
        walker, aiming = _walker(context, starts, round_, seed)
        if walker is None:
            return
        while not _over(context, until, end) and walker.failures <= _PATIENCE:
            walker.step()
            if not aiming:
                continue
            if walker.over == 0:
                walker.aim(_next_target(context, walker.objective))
            elif walker.failures >= _PATIENCE and _may_ease(context, walker.target):
                walker.aim(int((walker.target or 0) * _EASE))
        round_ += max(1, context.settings.workers)


def _may_ease(context: Context, target: int | None) -> bool:
    """Whether an easier target would still be better than the best plan."""
    return target is not None and (context.objective is None or target * _EASE < context.objective)


def _walker(
    context: Context, starts: Sequence[Start], round_: int, seed: int
) -> tuple[Walker | None, bool]:
    """Even rounds descend from the best plan, or seek a better start; odd ones aim at a target.

    Two of three rounds choose among the options of the core, the third among all.
    """
    best = context.best
    sizes = context.sizes.setdefault(round_ % max(1, context.settings.workers), Sizes())
    keep = context.keep if (round_ // 2) % 3 == 2 else context.core
    aims = context.instance.objective != Objective.TOTAL and bool(starts)
    start = starts[(round_ // 2) % len(starts)] if starts else None
    if start is None:
        return (
            None if best is None else Walker(context, best, seed, keep=keep, sizes=sizes)
        ), False
    far = context.objective is None or (
        aims and 0 < start.over < _REPAIRABLE and _is_far(context, start.promise)
    )
    if far and (round_ % 2 == 0 or not aims):
        cap = int(start.promise * _FAR)
        cap = cap if context.objective is None else min(cap, context.objective - 1)
        return Walker(context, start.placement, seed, cap=cap, keep=keep, sizes=sizes), False
    if best is not None and (round_ % 2 == 0 or not aims):
        return Walker(context, best, seed, keep=keep, sizes=sizes), False
    target = _next_target(context, start.promise) if best is not None else start.promise
    if context.objective is not None:
        target = min(max(target, start.promise), context.objective - 1)
    return Walker(context, start.placement, seed, int(target * 1.002), None, keep, sizes), True


def _is_far(context: Context, promise: int) -> bool:
    """Whether a choice that promises this is a better start than the best plan.

    It is where the best plan costs much more, or holds an option that alone costs more: no
    neighbourhood takes that table away, as many others would have to make room at once.
    """
    assert context.objective is not None and context.best is not None
    dearest = int(own_cost(context.instance)[context.best.options].max())
    return context.objective > promise * _FAR or dearest > promise * DEAR


def _next_target(context: Context, objective: int) -> int:
    """Halfway between what is reached and what is proved."""
    reached = objective if context.objective is None else min(objective, context.objective)
    bound = context.bound if context.bound is not None else 0
    return reached - max(1, (reached - bound) // 2)


def _over(context: Context, until: float, end: float) -> bool:
    return context.over() or context.clock.seconds() >= until or context.work >= end
