"""The clock that all methods use: wall time, or counted work.

``Clock(settings)`` measures wall time unless ``settings.work_limit`` is given. Its methods are the
same for both and use *units*: seconds, or units of work (CP-SAT's deterministic seconds).

* ``now()``: units spent; ``remaining()``: units left; ``share(s)``: a share of those left;
* ``limits(amount)``: the ``Limits`` of one call of a solver (:mod:`formulations.cpsat`), within
  what is left;
* ``spend(work)``, to be called after such a call or after counted steps of a search: it advances a
  work clock and does not affect wall time. One unit should be about a second of one core;
* ``over()``, ``check()`` (raises :class:`OutOfTime` inside long steps), ``interrupted()``;
* ``record(objective, bound, source)`` adds a point to the trace, at ``now()``.

With counted work, all decisions depend on work only. So the same instance, settings and seed with
one worker give the same plan, bound and trace on a busy and on an idle machine. Hence no method may
read the time itself, or decide by how long something took. (If there is a time limit too, it ends
the run like the caller's stop flag, as a last resort.)
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from formulations.result.placement import Placement
from formulations.runtime.timing import CallTime
from formulations.settings import News, Settings, TracePoint

#: Units to take a share of if the run has no limit.
_WITHOUT_LIMIT = 60.0


@dataclass(frozen=True)
class Limits:
    """Limits of one call of a solver.

    Attributes
    ----------
    seconds, work : float or None
        Wall clock; deterministic work. None: no limit.
    workers, seed : int
    stop : threading.Event or None
        Ends the search when set.
    gap : float
        Relative gap at which to stop.
    """

    seconds: float | None = None
    work: float | None = None
    workers: int = 1
    seed: int = 0
    stop: threading.Event | None = None
    gap: float = 0.0


class OutOfTime(Exception):
    """A long step was aborted because the time is over or the caller set the stop flag."""


class Clock:
    """Time or work since a solve began, its limit and the caller's stop flag; keeps the trace.

    Parameters
    ----------
    settings : Settings
        ``work_limit`` decides whether it is a wall clock or a work clock.

    Attributes
    ----------
    counts : bool
        Whether it counts work instead of measuring wall time.
    work : float
        Work counted so far, on either kind of clock.
    trace : list of TracePoint
    call : CallTime
        The time of the caller's whole call, which this solve may be a part of.
    certified : int or None
        The best bound that a checked certificate proved so far.
    notes : list of str
        Sentences for the outcome's note.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._time = CallTime(settings.time_limit)
        self.call = settings.call or self._time
        self._lock = threading.Lock()
        self._held_back = 0.0
        self.work = 0.0
        self.counts = settings.work_limit is not None
        self.trace: list[TracePoint] = []
        self.certified: int | None = None
        self.notes: list[str] = []

    def seconds(self) -> float:
        """Wall time in seconds since the start: for reports only, never for decisions."""
        return self._time.seconds()

    def now(self) -> float:
        """Units spent: seconds, or work counted so far."""
        return self.work if self.counts else self.seconds()

    def remaining(self) -> float:
        """Units left (infinite without a limit, never negative)."""
        if not self.counts:
            return self.seconds_left()
        return max(0.0, (self._settings.work_limit or 0.0) - self._held_back - self.work)

    def seconds_left(self) -> float:
        """Seconds of wall time until the time limit (infinite without one): a last resort."""
        held = 0.0 if self.counts else self._held_back
        return max(0.0, -held - self.late())

    def late(self) -> float:
        """Seconds since the time limit, this solve's or the call's, or less than 0 before it; minus
        infinity without one."""
        return max(self._time.late(), self.call.late())

    def compiling(self) -> float:
        """Seconds since the start in which the loops of the search were compiled."""
        return self._time.compiling()

    def share(self, share: float) -> float:
        """A share of the units left, or of a minute if there is no limit."""
        left = self.remaining()
        return share * (_WITHOUT_LIMIT if left == float("inf") else left)

    def spend(self, work: float) -> None:
        """Count work that was done."""
        with self._lock:
            self.work += work

    def limits(self, amount: float | None = None, seed: int = 0, workers: int = 1) -> Limits:
        """Limits of one call of a solver: at most ``amount`` units, and at most what is left."""
        units = self.remaining() if amount is None else min(amount, self.remaining())
        seconds = self.seconds_left() if self.counts else units
        return Limits(
            seconds=None if seconds == float("inf") else seconds,
            work=units if self.counts else None,
            workers=max(1, workers),
            seed=seed,
            stop=self._settings.stop,
        )

    @contextmanager
    def holding_back(self, units: float) -> Iterator[None]:
        """Reserve some of the time for later: inside the context it does not count as remaining."""
        self._held_back += units
        try:
            yield
        finally:
            self._held_back -= units

    def interrupted(self) -> bool:
        """Whether the caller has set the stop flag."""
        return self._settings.stop.is_set()

    def over(self) -> bool:
        """Whether to stop now, for either reason."""
        return self.interrupted() or self.remaining() <= 0.0 or self.seconds_left() <= 0.0

    def check(self) -> None:
        """Abort a long step, such as building a model, if it is time to stop.

        Raises
        ------
        OutOfTime
            When it is time to stop.
        """
        if self.over():
            raise OutOfTime

    def forget_bounds(self) -> None:
        """Remove all bounds from the trace, because a known plan contradicts one of them."""
        with self._lock:
            plans = [p for p in self.trace if p.objective is not None]
            self.trace = [replace(p, bound=None) for p in plans]
            self.certified = None

    def record(
        self,
        objective: int | None,
        bound: int | None,
        source: str,
        placement: Placement | None = None,
    ) -> None:
        """Record an improvement and report it to the caller, with the checked plan if it is new."""
        with self._lock:  # read the time inside it, so that points of two threads stay in order
            point = TracePoint(round(self.now(), 4), objective, bound, source)
            self.trace.append(point)
        values = (point.seconds, objective, bound, source)
        self._report(News(*values, certified=self.certified, placement=placement))

    def certify(self, bound: int | None) -> None:
        """Record the bound of a checked certificate, and report it to the caller if it is
        higher."""
        with self._lock:
            if bound is None or (self.certified is not None and bound <= self.certified):
                return
            self.certified = bound
        self._report(News(round(self.now(), 4), None, None, "certificate", bound))

    def tell(self, sentence: str) -> None:
        """Add a sentence to the outcome's note, once."""
        with self._lock:
            if sentence not in self.notes:
                self.notes.append(sentence)

    def _report(self, point: News) -> None:
        if self._settings.on_progress is not None:
            self._settings.on_progress(point)
