"""What every part of the search shares: the instance, the best plan, time and work."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.bounds.own import own_cost
from formulations.clock import Clock, Limits
from formulations.instance import Instance, IntArray
from formulations.result.check import check
from formulations.result.outcome import BoundSource
from formulations.result.placement import Placement
from formulations.search.parts import Sizes
from formulations.search.state import peak_costs
from formulations.settings import Settings


class Context:
    """The best plan and the best bound so far, safe to share between threads.

    Attributes
    ----------
    instance : Instance
    costs : int64 array [entries, peaks]
    keep : bool array [options]
        Options that a better plan may still use.
    core : bool array [options]
        Those of them near the relaxation's choice: where search looks first.
    best : Placement or None
    objective : int or None
    bound : int or None
    source : BoundSource or None
    float_filtered : bool
        Whether options were dropped by floating-point arithmetic.
    refuted : BoundSource or None
        Who proved that there is no plan at all.
    sizes : dict of walker to Sizes
        How much the neighbourhoods of each walker open, from turn to turn.
    """

    def __init__(
        self, instance: Instance, settings: Settings, clock: Clock, keep: NDArray[np.bool_]
    ) -> None:
        self.instance, self.settings, self.clock = instance, settings, clock
        self.costs: IntArray = peak_costs(instance)
        self.keep = keep
        self.core = keep
        self.best: Placement | None = None
        self.objective: int | None = None
        self.bound: int | None = None
        self.source: BoundSource | None = None
        self.refuted: BoundSource | None = None
        self.float_filtered = False
        self.sizes: dict[int, Sizes] = {}
        self.lock = threading.Lock()

    def offer(self, placement: Placement, source: str) -> bool:
        """Take a plan if the check accepts it and it is the best so far."""
        verdict = check(self.instance, placement)
        if not verdict.feasible:
            return False
        objective = verdict.objectives[self.instance.objective.value]
        with self.lock:
            if self.objective is not None and objective >= self.objective:
                return False
            self.best, self.objective = placement, objective
            if self.bound is not None and self.bound > objective and not self.exact:
                self.bound = self.source = None  # floating point was wrong
                self.clock.forget_bounds()
        self.clock.record(objective, self.bound, source)
        return True

    def lift(self, bound: int | None, source: BoundSource) -> None:
        """Take a bound if it is the best so far, or the first in integers that meets the plan."""
        if bound is None:
            return
        with self.lock:
            if self.objective is not None and not source.exact:
                bound = min(bound, self.objective)
            meets = self.objective is not None and bound >= self.objective
            proves = meets and source.exact and not self.exact
            if self.bound is not None and bound <= self.bound and not proves:
                return
            self.bound, self.source = bound, source
        self.clock.record(self.objective, bound, source.method)

    def spend(self, work: float) -> None:
        """Count deterministic work."""
        self.clock.spend(work)

    @property
    def work(self) -> float:
        """Deterministic work so far."""
        return self.clock.work

    def cheap(self, dearest: int) -> NDArray[np.bool_]:
        """Options that alone cost this or less, where every table has one left; else all."""
        keep = self.keep & (own_cost(self.instance) <= dearest)
        every = np.logical_or.reduceat(keep, self.instance.table_options[:-1]).all()
        return keep if every else self.keep

    @property
    def exact(self) -> bool:
        """Whether the best bound was derived in integers."""
        return self.source is not None and self.source.exact

    @property
    def met(self) -> bool:
        """Whether the best bound reaches the best plan, be it in floating point."""
        return (
            self.objective is not None and self.bound is not None and (self.bound >= self.objective)
        )

    @property
    def proved(self) -> bool:
        """Whether the best plan is known to be optimal, or that there is none."""
        return self.refuted is not None or (self.met and self.exact)

    def over(self) -> bool:
        """Whether to stop: proved, out of time or work, or interrupted."""
        return self.proved or self.clock.over()

    def work_left(self) -> float:
        """Work units left (infinite without a limit)."""
        return self.clock.remaining() if self.clock.counts else float("inf")

    def spent(self) -> float:
        """Deterministic work so far in a reproducible run, else seconds."""
        return self.clock.now()

    @property
    def reproducible(self) -> bool:
        """Whether only deterministic limits may steer the search."""
        return self.clock.counts

    def limits(
        self, amount: float | None, seed: int = 0, workers: int = 1, gap: float = 0.0
    ) -> Limits:
        """Limits for one solve of about ``amount`` units of the clock, within what is left."""
        return replace(self.clock.limits(amount, seed, workers), gap=gap)
