"""Where the wall clock of a caller's call goes: its stages, its limit, and what no limit counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Most seconds of compiling that a time limit leaves out.
MOST_UNCOUNTED = 120.0


class Stopwatch:
    """Seconds in which at least one thread was inside, as a context."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._total = self._since = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._since = time.perf_counter()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._total += time.perf_counter() - self._since

    @property
    def running(self) -> bool:
        """Whether a thread is inside."""
        return self._inside > 0

    @property
    def seconds(self) -> float:
        """The sum so far."""
        with self._lock:
            now = time.perf_counter() - self._since if self._inside else 0.0
            return self._total + now


#: Seconds that no time limit counts: another process compiles the loops of the search, once per
#: machine.
COMPILING = Stopwatch()


class CallTime:
    """The wall clock of one call, from its creation on.

    Parameters
    ----------
    limit : float or None
        Seconds for the whole call; compiling is added to them. None: no limit.

    Attributes
    ----------
    stages : dict of str to float
        Seconds of every stage so far. Stages inside a stage belong to the outer one.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._limit, self.stages = limit, dict[str, float]()
        self._start, self._compiled = time.perf_counter(), COMPILING.seconds
        self._inside = False

    def seconds(self) -> float:
        """Seconds since the call began."""
        return time.perf_counter() - self._start

    def compiling(self) -> float:
        """Seconds since then in which the loops of the search were compiled."""
        return COMPILING.seconds - self._compiled

    def late(self) -> float:
        """Seconds since the limit, or less than 0 before it; minus infinity without one."""
        if self._limit is None:
            return -float("inf")
        return self.seconds() - self._limit - min(MOST_UNCOUNTED, self.compiling())

    def left(self) -> float:
        """Seconds until the limit: infinite without one, never negative."""
        return max(0.0, -self.late())

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the seconds inside, without compiling, for a stage."""
        if self._inside:
            yield
            return
        self._inside, began, compiled = True, time.perf_counter(), COMPILING.seconds
        try:
            yield
        finally:
            spent = time.perf_counter() - began - (COMPILING.seconds - compiled)
            self.stages[name] = self.stages.get(name, 0.0) + max(0.0, spent)
            self._inside = False

    def told(self) -> dict[str, float]:
        """The seconds of each stage, as an outcome's ``detail["stages"]`` keeps them."""
        return {name: round(value, 2) for name, value in self.stages.items() if value >= 0.01}
