"""What a caller may ask of any formulation, and the clock they all obey."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from formulations.placement import Placement


class OutOfTime(Exception):
    """A long step was left half done: the time is over, or the caller asked to stop."""


@dataclass(frozen=True)
class TracePoint:
    """Best objective and bound known at a moment.

    Attributes
    ----------
    seconds : float
        Since the solve began.
    objective, bound : int or None
        None: not known yet.
    source : str
        Which method reported it.
    """

    seconds: float
    objective: int | None
    bound: int | None
    source: str


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Limits and wishes for one solve.

    Attributes
    ----------
    time_limit : float or None
        Seconds of wall clock; None: no limit.
    work_limit : float or None
        Deterministic work (each formulation says in which unit); with ``workers=1`` it makes a
        run reproducible.
    workers : int
        Threads a solver may use.
    seed : int
    hint : Placement or None
        A plan to start from; need not be feasible.
    polish : bool
        After the primary objective, spend leftover time lowering the total, then Σ use/capacity.
    certificate : bool
        Attach a certificate that ``verify`` can re-derive without a solver.
    stop : threading.Event
        Set by the caller to interrupt: the best plan found is returned.
    on_progress : callable or None
        Called with a :class:`TracePoint` at every improvement, from any thread.
    options : mapping
        Settings of one formulation (named in its docstring), such as the DP's axes and bins.
    """

    time_limit: float | None = 60.0
    work_limit: float | None = None
    workers: int = field(default_factory=available_cores)
    seed: int = 0
    hint: Placement | None = None
    polish: bool = True
    certificate: bool = True
    stop: threading.Event = field(default_factory=threading.Event, compare=False)
    on_progress: Callable[[TracePoint], None] | None = field(default=None, compare=False)
    options: Mapping[str, object] = field(default_factory=dict)

    def describe(self) -> dict[str, object]:
        """The settings that an Outcome records."""
        return {
            "time_limit": self.time_limit,
            "work_limit": self.work_limit,
            "workers": self.workers,
            "seed": self.seed,
            "hint": self.hint is not None,
            "polish": self.polish,
            **{str(k): v for k, v in self.options.items()},
        }


class Clock:
    """Time since a solve began, against its limit and the caller's stop flag; keeps the trace."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._held_back = 0.0
        self.trace: list[TracePoint] = []

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def remaining(self) -> float:
        """Seconds left (infinite without a limit, never negative)."""
        limit = self._settings.time_limit
        if limit is None:
            return float("inf")
        return max(0.0, limit - self._held_back - self.seconds())

    @contextmanager
    def holding_back(self, seconds: float) -> Iterator[None]:
        """Keep some of the time for what comes after: it does not count as remaining meanwhile."""
        self._held_back += seconds
        try:
            yield
        finally:
            self._held_back -= seconds

    def interrupted(self) -> bool:
        """Whether the caller asked to stop."""
        return self._settings.stop.is_set()

    def over(self) -> bool:
        """Whether to stop now, for either reason."""
        return self.interrupted() or self.remaining() <= 0.0

    def check(self) -> None:
        """Leave a long step, such as building a model, from inside.

        Raises
        ------
        OutOfTime
            When it is time to stop.
        """
        if self.over():
            raise OutOfTime

    def record(self, objective: int | None, bound: int | None, source: str) -> None:
        """Note an improvement and tell the caller."""
        point = TracePoint(round(self.seconds(), 4), objective, bound, source)
        with self._lock:
            self.trace.append(point)
        if self._settings.on_progress is not None:
            self._settings.on_progress(point)
