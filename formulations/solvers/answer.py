"""What a solver says: one list of statuses, and one rule to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

#: How often a waiting solve looks at the caller's stop flag, seconds.
POLL = 0.05


class Found(StrEnum):
    """What a solver says of a model; ``OPTIMAL`` and ``INFEASIBLE`` are its claims of proof."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver found.

    Attributes
    ----------
    status : Found
    value : int or None
        Objective of ``values``.
    bound : int or None
        No solution of the model costs less.
    values : int64 array [columns] or None
    work : float
        Deterministic work spent.
    done : bool
        Whether the solver ended by itself, not at a limit; no claim.
    relaxed : bool
        Whether rows beyond 62 bits were weakened: a solution may break them.
    """

    status: Found
    value: int | None = None
    bound: int | None = None
    values: NDArray[Any] | None = None
    work: float = 0.0
    done: bool = False
    relaxed: bool = False


def run_until(
    work: Callable[[], Any], halt: Callable[[], None], stop: threading.Event | None
) -> Any:
    """Run a solver in a thread of its own, so that signals and the stop flag are heard.

    Parameters
    ----------
    work : callable
        Runs the solver; what it raises is raised here.
    halt : callable
        Asks the solver to end soon; may be called more than once.
    stop : threading.Event or None
    """
    result: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL)
            if stop is not None and stop.is_set():
                halt()
    except BaseException:
        while thread.is_alive():
            halt()
            thread.join(POLL)
        raise
    if errors:
        raise errors[0]
    return result[0]
