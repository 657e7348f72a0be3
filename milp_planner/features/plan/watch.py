"""Progress of a running solve, reported to the caller's function or in one line."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO

from formulations import BoundSource, Placement, StoppedBy, registry
from formulations.result.outcome import found, gap_between
from formulations.runtime.timing import COMPILING
from formulations.settings import News
from milp_planner.drawing.units import show_cost, show_gap
from milp_planner.plans.compile import Compiled
from milp_planner.plans.placement import Plan, decode

#: Called for every better plan or bound; returning False ends the search.
OnPlan = Callable[[Plan, int | None], object]


class Newest:
    """The newest progress point of the solver threads; missing values come from earlier points."""

    def __init__(self, then: Callable[[News], None] | None = None) -> None:
        self.point: News | None = None
        self._then = then
        self._lock = threading.Lock()

    def __call__(self, point: News) -> None:
        """Store a point and pass it on."""
        with self._lock:
            self.point = point if self.point is None else _merged(self.point, point)
        if self._then is not None:
            self._then(point)


def _merged(before: News, point: News) -> News:
    known = ("objective", "bound", "certified", "placement")
    lacks = {name: getattr(before, name) for name in known if getattr(point, name) is None}
    return replace(point, **lacks)


def progress_line(point: News | None, seconds: float, unit: str = "ps") -> str:
    """``12.3 s  best 30.5 ms  bound 29.8 ms  gap 2.3%  certified gap 2.4%``."""
    parts = [f"{seconds:.1f} s", *(["compiling the search, once"] if COMPILING.running else [])]
    if point is not None:
        parts += [f"best {show_cost(point.objective, unit)}"]
        parts += [f"bound {show_cost(point.bound, unit)}"]
        gap = gap_between(point.objective, point.bound)
        certified = gap_between(point.objective, point.certified)
        parts += [] if gap is None else [f"gap {show_gap(gap)}"]
        parts += [] if certified is None else [f"certified gap {show_gap(certified)}"]
    return "  ".join(parts)


class Line:
    """One line that is rewritten in place, on a terminal or under a notebook's cell."""

    def __init__(self, newest: Newest, stream: TextIO | None = None) -> None:
        self._newest, self._stream = newest, stream or sys.stderr
        self._start, self._width = time.perf_counter(), 0

    def __call__(self) -> None:
        """Rewrite the line."""
        text = progress_line(self._newest.point, time.perf_counter() - self._start)
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)

    def end(self) -> None:
        """End the line, leaving it as it is."""
        if self._width:
            self._stream.write("\n")


class Watch:
    """Calls the caller's function for every better plan, and for every better bound on one."""

    def __init__(
        self, compiled: Compiled, formulation: str, on_plan: OnPlan, newest: Newest
    ) -> None:
        self._compiled, self._formulation, self._on_plan = compiled, formulation, on_plan
        self._newest = newest
        self._last: tuple[Placement, int | None] | None = None
        self._exact = registry.get(formulation).proves.startswith("optimum")

    def __call__(self) -> object:
        """Report the newest plan and bound if they have changed."""
        point = self._newest.point
        if point is None or point.placement is None:
            return None
        if self._last is not None and self._last == (point.placement, point.bound):
            return None
        self._last = point.placement, point.bound
        return self._on_plan(self._plan(point.placement, point), point.bound)

    def _plan(self, placement: Placement, point: News) -> Plan:
        """The plan that an interruption would return now; it has passed the check."""
        source = None if point.bound is None else BoundSource(self._formulation, self._exact)
        outcome = found(
            self._compiled.instance, self._formulation, placement, StoppedBy.INTERRUPTED,
            point.bound, source, seconds=point.seconds,
        )  # fmt: skip
        return decode(self._compiled.options, self._compiled.instance, outcome)


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel."""
    shell = sys.modules.get("IPython")
    found_shell = None if shell is None else shell.get_ipython()
    return type(found_shell).__name__ == "ZMQInteractiveShell"
