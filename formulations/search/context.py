"""What every part of the search shares: the instance, the best plan, time and work."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from formulations.aggregate.cpsat import Limits
from formulations.bounds.own import own_cost
from formulations.check import check
from formulations.instance import Instance, IntArray
from formulations.outcome import BoundSource
from formulations.placement import Placement
from formulations.search.parts import Sizes
from formulations.search.state import peak_costs
from formulations.settings import Clock, Settings


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
    work : float
        Deterministic work so far: CP-SAT's deterministic seconds.
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
        self.work = 0.0
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
        self.clock.record(objective, self.bound, source)
        return True

    def lift(self, bound: int | None, source: BoundSource) -> None:
        """Take a bound if it is the best so far."""
        if bound is None:
            return
        with self.lock:
            if self.bound is not None and bound <= self.bound:
                return
            self.bound, self.source = bound, source
        self.clock.record(self.objective, bound, source.method)

    def spend(self, work: float) -> None:
        """Count deterministic work."""
        with self.lock:
            self.work += work

    def cheap(self, dearest: int) -> NDArray[np.bool_]:
        """Options that alone cost this or less, where every table has one left; else all."""
        keep = self.keep & (own_cost(self.instance) <= dearest)
        every = np.logical_or.reduceat(keep, self.instance.table_options[:-1]).all()
        return keep if every else self.keep

    @property
    def proved(self) -> bool:
        """Whether the best plan is known to be optimal, or that there is none."""
        return self.refuted is not None or (
            self.objective is not None and self.bound is not None and (self.bound >= self.objective)
        )

    def over(self) -> bool:
        """Whether to stop: proved, out of time or work, or interrupted."""
        return self.proved or self.clock.over() or self.work_left() <= 0

    def work_left(self) -> float:
        """Work units left (infinite without a limit)."""
        limit = self.settings.work_limit
        return float("inf") if limit is None else limit - self.work

    def spent(self) -> float:
        """Deterministic work so far in a reproducible run, else seconds."""
        return self.work if self.reproducible else self.clock.seconds()

    @property
    def reproducible(self) -> bool:
        """Whether only deterministic limits may steer the search."""
        return self.settings.work_limit is not None

    def limits(self, amount: float, seed: int, workers: int = 1, gap: float = 0.0) -> Limits:
        """Limits for one solve of about ``amount`` seconds, within what is left.

        In a reproducible run the amount is deterministic work and the wall clock only a last
        resort; otherwise it is wall time.
        """
        seconds = self.clock.remaining()
        if not self.reproducible:
            seconds = min(seconds, amount)
        return Limits(
            seconds=seconds,
            work=min(amount, self.work_left()) if self.reproducible else None,
            workers=workers,
            seed=seed,
            stop=self.settings.stop,
            gap=gap,
        )
