"""Prove a large choice of options by solving small cores of it (Balas and Zemel 1980).

Where places are fixed, the Lagrangian bound is nearly tight, so almost every option is excluded
once a good plan is known. The model is solved over the few options with the least bounds; its
plan excludes others; when none is left outside the core, the core's optimum is the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock
from formulations.instance import Instance
from formulations.reduce import NEVER, OptionBounds
from formulations.result.outcome import Outcome, Status
from formulations.result.placement import Placement

#: Options beyond one a table in the first core.
FIRST = 400
#: Units a core that cannot be the last may take: this much, and this share of those spent.
LEAST, SHARE = 3.0, 0.5

#: Solve over a mask of options, from a plan, for some units of the clock.
SolveKept = Callable[[NDArray[np.bool_], Placement | None, float], Outcome]


@dataclass(frozen=True, eq=False)
class CoreAnswer:
    """The end of the search.

    Attributes
    ----------
    outcome : Outcome
        Of the last core; its bound speaks of that core only.
    bound : int
        Valid for the whole instance.
    best : Placement or None
    cores : list of int
        Options in each core solved.
    """

    outcome: Outcome
    bound: int
    best: Placement | None
    cores: list[int]


def solve_cores(
    instance: Instance, bounds: OptionBounds, solve_kept: SolveKept, clock: Clock
) -> CoreAnswer:
    """Solve larger and larger cores until one holds every option that could matter.

    Parameters
    ----------
    instance : Instance
    bounds : OptionBounds
    solve_kept : callable
        Exact solver over a mask of options.
    clock : Clock

    Returns
    -------
    CoreAnswer
    """
    everything = bounds.of_option < NEVER
    extra, best, value = FIRST, None, NEVER
    core = bounds.cheapest(instance, extra)
    cores: list[int] = []
    while True:
        last = not (bounds.below(value) & ~core).any()
        amount = clock.remaining() if last else _share(clock)
        outcome = solve_kept(core, best, amount)
        cores.append(int(core.sum()))
        if outcome.placement is not None and (outcome.objective or 0) < value:
            best, value = outcome.placement, int(outcome.objective or 0)
        needed = bounds.below(value)
        done = not (needed & ~core).any()
        proved = outcome.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if clock.over() or (done and (proved or last)) or (core == everything).all():
            return CoreAnswer(outcome, _bound(bounds, core, outcome, value), best, cores)
        if not done:
            extra *= 2
            core = (
                needed
                if needed.sum() <= instance.num_tables + extra
                else bounds.cheapest(instance, extra)
            )
        if best is not None:
            core = core.copy()
            core[best.options] = True


def _share(clock: Clock) -> float:
    return min(clock.remaining(), LEAST + SHARE * clock.now())


def _bound(bounds: OptionBounds, core: NDArray[np.bool_], outcome: Outcome, value: int) -> int:
    """A plan stays in the core and costs at least its bound, or leaves it and costs as much as
    some option outside."""
    outside = int(bounds.of_option[~core].min(initial=NEVER))
    inside = outcome.bound
    if outcome.status == Status.INFEASIBLE:
        inside = NEVER
    if inside is None:
        inside = bounds.bound
    return max(bounds.bound, min(inside, outside, value))
