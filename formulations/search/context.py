"""State shared by all parts of the search: the best plan and bound, prices, time and work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock, Limits
from formulations.instance import Instance, Objective
from formulations.instance.facts import own_cost
from formulations.reduce import bounds_at
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import BoundSource, within_gap
from formulations.result.placement import Placement
from formulations.result.verify import accepted
from formulations.search.loops import Loops
from formulations.search.parameters import Parameters
from formulations.settings import Settings, available_cores

#: Seconds that the check of a certificate may take even if less time is left, and that a side has
#: to end when the search is over (a compiler takes longer, and is left behind).
GRACE = 2.0


class Context:
    """The best plan and bound so far; thread-safe.

    Attributes
    ----------
    instance : Instance
    parameters : Parameters
        Numbers that steer the search, as the caller's options set them.
    peaks : int
        Number of targets whose sum is the objective's target: one per phase under ``step_time``,
        else one.
    keep : bool array [options]
        Options that a better plan may still use.
    best : Placement or None
    objective : int or None
    bound : int or None
    source : BoundSource or None
    refuted : BoundSource or None
        Method that proved that there is no plan.
    failed : bool
        Whether a thread ended in an error.
    closed : bool
        Whether the outcome is final: plans and bounds of threads still running are ignored.
    certificate : Certificate or None
        Its multipliers price options.
    proven : Certificate or None
        The prover's best certificate, accepted by the checker.
    proof : Certificate or None
        Certificate that there is no plan.
    loops : Loops
        The compiled loops, or the process that compiles them.
    """

    def __init__(
        self, instance: Instance, settings: Settings, clock: Clock, keep: NDArray[np.bool_]
    ) -> None:
        self.instance, self.settings, self.clock = instance, settings, clock
        self.parameters = Parameters.of(settings.options)
        step = instance.objective == Objective.STEP_TIME
        self.peaks = len(instance.phases) if step else 1
        self.keep = keep
        self.best: Placement | None = None
        self.objective: int | None = None
        self.bound: int | None = None
        self.source: BoundSource | None = None
        self.refuted: BoundSource | None = None
        self.failed = self.closed = False
        self.certificate: Certificate | None = None
        self.proven: Certificate | None = None
        self.proof: Certificate | None = None
        self.loops = Loops(compile_apart=not clock.counts)
        self._checked: dict[int, tuple[Certificate, bool]] = {}
        self._below: tuple[int | None, NDArray[np.bool_]] = (None, keep)
        self.lock, self._checking = threading.Lock(), threading.Lock()

    def offer(self, placement: Placement, source: str) -> bool:
        """Keep a plan if the check accepts it and it is the best so far; whether it was kept."""
        verdict = check(self.instance, placement)
        if not verdict.feasible:
            return False
        objective = verdict.objectives[self.instance.objective.value]
        with self.lock:
            if self.closed or (self.objective is not None and objective >= self.objective):
                return False
            self.best, self.objective = placement, objective
            self.clock.record(objective, self.bound, source, placement)
        return True

    def lift(self, bound: int | None, source: BoundSource) -> None:
        """Keep a bound, which must be derived in integers, if it is the best so far."""
        if bound is None:
            return
        with self.lock:
            if self.closed or (self.bound is not None and bound <= self.bound):
                return
            self.bound, self.source = bound, source
            self.clock.record(self.objective, bound, source.method)

    def above(self, share: float) -> bool:
        """Whether the best plan may be more than this share above the bound."""
        with self.lock:
            objective, bound = self.objective, self.bound
        return objective is None or bound is None or objective - bound > share * abs(bound)

    def accepts(self, instance: Instance, certificate: Certificate) -> bool:
        """Whether a certificate is accepted, in the time left; the result is cached."""
        with self._checking:
            if id(certificate) not in self._checked:
                left = inf if self.clock.counts else max(GRACE, self.clock.remaining())
                good = accepted(instance, certificate, left)
                self._checked[id(certificate)] = certificate, good
                if good:
                    self.clock.certify(certificate.target)
            return self._checked[id(certificate)][1]

    def checked(self, certificate: Certificate) -> bool:
        """Whether a certificate has been judged."""
        return id(certificate) in self._checked

    @property
    def beside(self) -> bool:
        """Whether the two workers run at the same time."""
        return self.settings.workers > 1 and not self.clock.counts

    @property
    def workers(self) -> int:
        """The threads asked for, but no more than there are cores: more would only take turns."""
        return min(self.settings.workers, available_cores())

    def close(self) -> None:
        """Ignore all later plans and bounds."""
        with self.lock:
            self.closed = True

    def spend(self, work: float) -> None:
        """Count deterministic work."""
        self.clock.spend(work)

    @property
    def work(self) -> float:
        """Deterministic work counted so far."""
        return self.clock.work

    def cheap(self, dearest: int) -> NDArray[np.bool_]:
        """Options whose own cost is at most a value, if every table has one; else all options."""
        keep = self.keep & (own_cost(self.instance) <= dearest)
        every = np.logical_or.reduceat(keep, self.instance.table_options[:-1]).all()
        return keep if every else self.keep

    @property
    def enough(self) -> bool:
        """Whether the certified bound is within the caller's gap of the best plan."""
        return within_gap(self.objective, self.clock.certified, self.settings.gap_asked)

    @property
    def proved(self) -> bool:
        """Whether the best plan is known to be optimal, or that there is none."""
        objective, bound = self.objective, self.bound
        met = objective is not None and bound is not None and bound >= objective
        return met or self.refuted is not None

    def left_below(self, value: int) -> NDArray[np.bool_]:
        """Options that a plan cheaper than ``value`` may use, by their own cost and by exact
        reduced-cost fixing."""
        known, keep = self._below  # read once: another thread may replace the pair
        if known != value:
            keep = self.keep & (own_cost(self.instance) < value)
            if self.certificate is not None:
                keep = keep & bounds_at(self.instance, keep, self.certificate).below(value)
            self._below = (value, keep)
        return keep

    def drop(self) -> None:
        """Drop options that no better plan can use; if a table has none left, the plan is
        optimal."""
        if self.objective is None:
            return
        value = self.objective
        keep = self.left_below(value)
        if not np.logical_or.reduceat(keep, self.instance.table_options[:-1]).all():
            self.lift(value, BoundSource("certificate", exact=True))
        else:
            self.keep = keep

    def over(self) -> bool:
        """Whether to stop: proved, within the gap, failed, closed, out of time or work, or
        interrupted."""
        ended = self.failed or self.closed or self.proved or self.enough
        return ended or self.clock.over()

    def limits(
        self, amount: float | None, seed: int = 0, workers: int = 1, gap: float = 0.0
    ) -> Limits:
        """Limits for one solve of at most ``amount`` units of the clock, and of what is left; its
        stop flag is also set when the whole search is over."""
        stop = self.stop_when(self.over)
        return replace(self.clock.limits(amount, seed, workers), gap=gap, stop=stop)

    def stop_when(self, over: Callable[[], bool]) -> threading.Event:
        """A stop flag that is set if the caller's is, or if ``over`` returns true.

        ``over`` is called at irregular moments of wall time. With counted work it is not used, as
        the step at which it ends a solve, and the work spent by then, would depend on chance.
        """
        if self.clock.counts:
            return self.settings.stop
        return Either(self.settings.stop, over)


class Either(threading.Event):
    """An event that is also set if a function returns true."""

    def __init__(self, event: threading.Event, ask: Callable[[], bool]) -> None:
        super().__init__()
        self._event, self._ask = event, ask

    def is_set(self) -> bool:
        """Whether the event is set or the function returns true."""
        return self._event.is_set() or self._ask()
