"""Several walkers side by side: target-driven first, restarted when stuck."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
#: Overflow a rank up to which a packed choice is worth repairing, and the same where the best plan
#: holds a dear option.
_REPAIRABLE, _REPAIRABLE_IF_DEAR = 0.02, 0.03


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
    keep = _wide(context) if (round_ // 2) % 3 == 2 else context.core
    start = starts[(round_ // 2) % len(starts)] if starts else None
    aims = start is not None and _may_aim(context, start)
    descends = round_ % 2 == 0 or not aims
    if best is not None and descends and not (start and _is_dear(context, start)):
        return Walker(context, best, seed, keep=keep, sizes=sizes), False
    if start is None:
        return None, False
    if descends or _is_far(context, start):
        cap = int(start.promise * _FAR)
        cap = cap if context.objective is None else min(cap, context.objective - 1)
        return Walker(context, start.placement, seed, cap=cap, keep=keep, sizes=sizes), False
    target = _next_target(context, start.promise) if best is not None else start.promise
    if context.objective is not None:
        target = min(max(target, start.promise), context.objective - 1)
    return Walker(context, start.placement, seed, int(target * 1.002), None, keep, sizes), True


def _wide(context: Context) -> NDArray[np.bool_]:
    """All options but those that alone cost more than halfway from the bound to the best plan.

    With one of these in the best plan the search would end there.
    """
    if context.objective is None or context.bound is None:
        return context.keep
    return context.cheap((context.objective + context.bound) // 2)


def _may_aim(context: Context, start: Start) -> bool:
    """Whether a packed choice may be brought to what it promises."""
    total = context.instance.objective == Objective.TOTAL
    return not total and start.over <= _REPAIRABLE * context.instance.num_ranks


def _is_dear(context: Context, start: Start) -> bool:
    """Whether the best plan holds an option that alone costs more than a packed choice promises.

    No neighbourhood takes that table away, as many others would have to make room at once, so the
    packed choice is the better start.
    """
    assert context.best is not None
    if context.instance.objective == Objective.TOTAL or start.over == 0:
        return False
    dearest = int(own_cost(context.instance)[context.best.options].max())
    little = start.over <= _REPAIRABLE_IF_DEAR * context.instance.num_ranks
    return little and dearest > start.promise * DEAR


def _is_far(context: Context, start: Start) -> bool:
    """Whether the best plan costs so much that a packed choice is repaired before it is aimed."""
    return start.over > 0 and (context.objective or 0) > start.promise * _FAR


def _next_target(context: Context, objective: int) -> int:
    """Halfway between what is reached and what is proved."""
    reached = objective if context.objective is None else min(objective, context.objective)
    bound = context.bound if context.bound is not None else 0
    return reached - max(1, (reached - bound) // 2)


def _over(context: Context, until: float, end: float) -> bool:
    return context.over() or context.clock.seconds() >= until or context.work >= end
