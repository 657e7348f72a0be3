"""The one clock that every method obeys: seconds on the wall, or work that is only counted.

``Clock(settings)`` runs on the wall unless ``settings.work_limit`` is given. What a method asks
is the same for both, in *units*: seconds, or units of work (CP-SAT's deterministic seconds).

* ``now()`` units spent, ``remaining()`` units left, ``share(s)`` a share of those left;
* ``limits(amount)`` what one call of a solver may take: ``Limits`` for
  :mod:`formulations.cpsat`, within what is left;
* ``spend(work)`` after such a call, or after counted steps of a search: it moves a work clock and
  leaves a wall clock alone. One unit should be about a second of one core;
* ``over()``, ``check()`` (raises :class:`OutOfTime` inside long steps), ``interrupted()``;
* ``record(objective, bound, source)`` puts a point on the trace, at ``now()``.

A work clock steers by nothing but work, so the same instance, settings and seed with one worker
give the same plan, bound and trace on a busy and on an idle machine. Hence no method may ask
``time`` itself, or choose by how long something took. (A time limit given as well ends the run as
the caller's stop flag does, as a last resort; it is no unit to share out.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from formulations.result.placement import Placement
from formulations.settings import News, Settings, TracePoint

#: What a share is taken of where nothing limits the run, in units.
_WITHOUT_LIMIT = 60.0


@dataclass(frozen=True)
class Limits:
    """How long one call of a solver may search.

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
    """A long step was left half done: the time is over, or the caller asked to stop."""


class Clock:
    """Time since a solve began, against its limit and the caller's stop flag; keeps the trace.

    Parameters
    ----------
    settings : Settings
        ``work_limit`` decides whether it is a wall clock or a work clock.

    Attributes
    ----------
    counts : bool
        Whether it counts work instead of reading the wall.
    work : float
        Counted so far, on either kind of clock.
    trace : list of TracePoint
    certified : int or None
        The best bound that a checked certificate proved so far.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._held_back = 0.0
        self.work = 0.0
        self.counts = settings.work_limit is not None
        self.trace: list[TracePoint] = []
        self.certified: int | None = None

    def seconds(self) -> float:
        """Seconds on the wall since the start: to be told, never to steer by."""
        return time.perf_counter() - self._start

    def now(self) -> float:
        """Units spent: seconds, or work counted so far."""
        return self.work if self.counts else self.seconds()

    def remaining(self) -> float:
        """Units left (infinite without a limit, never negative)."""
        if not self.counts:
            return self.seconds_left()
        return max(0.0, (self._settings.work_limit or 0.0) - self._held_back - self.work)

    def seconds_left(self) -> float:
        """Seconds on the wall until the time limit (infinite without one): a last resort."""
        limit = self._settings.time_limit
        held = 0.0 if self.counts else self._held_back
        return float("inf") if limit is None else max(0.0, limit - held - self.seconds())

    def share(self, share: float) -> float:
        """A share of the units left; of a minute where there is no limit."""
        left = self.remaining()
        return share * (_WITHOUT_LIMIT if left == float("inf") else left)

    def spend(self, work: float) -> None:
        """Count work that was done."""
        with self._lock:
            self.work += work

    def limits(self, amount: float | None = None, seed: int = 0, workers: int = 1) -> Limits:
        """What one call of a solver may take: ``amount`` units at most, within what is left."""
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
        """Keep some of the time for what comes after: it does not count as remaining meanwhile."""
        self._held_back += units
        try:
            yield
        finally:
            self._held_back -= units

    def interrupted(self) -> bool:
        """Whether the caller asked to stop."""
        return self._settings.stop.is_set()

    def over(self) -> bool:
        """Whether to stop now, for either reason."""
        return self.interrupted() or self.remaining() <= 0.0 or self.seconds_left() <= 0.0

    def check(self) -> None:
        """Leave a long step, such as building a model, from inside.

        Raises
        ------
        OutOfTime
            When it is time to stop.
        """
        if self.over():
            raise OutOfTime

    def forget_bounds(self) -> None:
        """Take the bounds out of the trace: something known contradicts one."""
        with self._lock:
            told = [p for p in self.trace if p.objective is not None]
            self.trace = [replace(p, bound=None) for p in told]
            self.certified = None

    def record(
        self,
        objective: int | None,
        bound: int | None,
        source: str,
        placement: Placement | None = None,
    ) -> None:
        """Note an improvement and tell the caller, with the checked plan if that is the news."""
        with self._lock:  # the moment too: points of two threads stay in order
            point = TracePoint(round(self.now(), 4), objective, bound, source)
            self.trace.append(point)
        told = (point.seconds, objective, bound, source)
        self._tell(News(*told, certified=self.certified, placement=placement))

    def certify(self, bound: int | None) -> None:
        """Note what a checked certificate proves, and tell the caller if that is news."""
        with self._lock:
            if bound is None or (self.certified is not None and bound <= self.certified):
                return
            self.certified = bound
        self._tell(News(round(self.now(), 4), None, None, "certificate", bound))

    def _tell(self, point: News) -> None:
        if self._settings.on_progress is not None:
            self._settings.on_progress(point)
