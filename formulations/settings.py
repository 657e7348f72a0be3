"""What a caller may ask of any formulation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from formulations.goals import DEFAULT, Goals
from formulations.result.placement import Placement


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

    @property
    def known(self) -> tuple[int | None, int | None]:
        """Objective and bound."""
        return self.objective, self.bound


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
        After the primary objective, spend leftover time lowering the total, then Σ use/capacity;
        then the finishing pass.
    goals : Goals
        What the finishing pass improves, in which order, and what may be given up for it.
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
    goals: Goals = DEFAULT
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
            **({} if self.goals == DEFAULT else {"goals": str(self.goals)}),
            **{str(k): v for k, v in self.options.items()},
        }
