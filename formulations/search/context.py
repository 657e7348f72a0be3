"""What all parts of a search share: its state, the caller's settings, the clock and the loops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock, Limits
from formulations.evidence.verify import accepted
from formulations.instance import Instance
from formulations.result.certificate import Certificate
from formulations.result.outcome import within_gap
from formulations.result.placement import Placement
from formulations.search.loops import Loops
from formulations.search.numbers import GRACE
from formulations.search.parameters import Parameters
from formulations.search.state import Known, State
from formulations.settings import Settings, available_cores


class Context:
    """One search.

    Attributes
    ----------
    instance : Instance
    parameters : Parameters
        Numbers that steer the search, as the caller's options set them.
    peaks : int
        Number of targets whose sum is the objective's target: one per phase where each has a peak,
        else one.
    state : State
        What is known; what is offered goes there.
    offer, lift, drop, left_below : callable
        Those of the state.
    failed : bool
        Whether a thread ended in an error.
    loops : Loops
        The compiled loops, or the process that compiles them.
    """

    def __init__(
        self, instance: Instance, settings: Settings, clock: Clock, keep: NDArray[np.bool_]
    ) -> None:
        self.instance, self.settings, self.clock = instance, settings, clock
        self.parameters = Parameters.of(settings.options)
        self.peaks = len(instance.phases) if instance.by_phase else 1
        self.state = state = State(instance, clock, keep)
        self.offer, self.lift = state.offer, state.lift
        self.drop, self.left_below = state.drop, state.left_below
        self.failed = False
        self.loops = Loops(compile_apart=not clock.counts)
        self._checked: dict[int, tuple[Certificate, bool]] = {}
        self._checking = threading.Lock()

    @property
    def known(self) -> Known:
        """What is known now, frozen; the properties below are its fields, for those who need but
        one."""
        return self.state.known

    @property
    def keep(self) -> NDArray[np.bool_]:
        """Options that a better plan may still use."""
        return self.known.keep

    @property
    def best(self) -> Placement | None:
        """The best plan."""
        return self.known.best

    @property
    def objective(self) -> int | None:
        """What the best plan costs."""
        return self.known.objective

    @property
    def bound(self) -> int | None:
        """No plan costs less."""
        return self.known.bound

    def accepts(self, instance: Instance, certificate: Certificate) -> bool:
        """Whether a certificate is accepted, in the time left; the result is cached."""
        with self._checking:
            if id(certificate) not in self._checked:
                left = inf if self.clock.counts else max(GRACE, self.clock.remaining())
                good = accepted(instance, certificate, left, self.clock.tell)
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

    @property
    def enough(self) -> bool:
        """Whether the certified bound is within the caller's gap of the best plan."""
        return within_gap(self.objective, self.clock.certified, self.settings.gap_asked)

    def over(self) -> bool:
        """Whether to stop: proved, within the gap, failed, closed, out of time or work, or
        interrupted."""
        known = self.known
        ended = self.failed or known.closed or known.proved or self.enough
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
