"""Which plan to run in which window: the least time in all, changes of plans included."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def cheapest(
    fits: Sequence[Sequence[bool]], cost: Sequence[float], steps: Sequence[int], change: float
) -> list[int] | None:
    """The plan of every window with the least time in all, changes included.

    Parameters
    ----------
    fits : [plans][windows]
    cost : [plans]
        Milliseconds a step.
    steps : [windows]
    change : float
        Minutes a change.

    Returns
    -------
    list of int or None
        None if some window fits under no plan.
    """
    count = len(cost)
    total = [0.0] * count
    back: list[list[int]] = []
    for window, number in enumerate(steps):
        arrive, source = [], []
        for plan in range(count):
            ways = [total[p] + (change if window and p != plan else 0.0) for p in range(count)]
            best = min(range(count), key=lambda p: (ways[p], p != plan))
            here = cost[plan] * number / 60_000 if fits[plan][window] else float("inf")
            arrive.append(ways[best] + here)
            source.append(best)
        total = arrive
        back.append(source)
    last = min(range(count), key=lambda p: total[p])
    if total[last] == float("inf"):
        return None
    path = [last]
    for source in reversed(back[1:]):
        path.append(source[path[-1]])
    return path[::-1]


def minutes_of(
    path: Sequence[int], cost: Sequence[float], steps: Sequence[int], change: float
) -> float:
    """Minutes of a way through the windows, changes included; parameters as in :func:`cheapest`."""
    changes = sum(a != b for a, b in itertools.pairwise(path))
    run = sum(cost[plan] * number for plan, number in zip(path, steps, strict=True))
    return run / 60_000 + changes * change
