"""One run of the ladder, in a process of its own: every improvement as a JSON line, then the row.

Started by ``run.py``; memory is measured from outside, so that a killed run still has its curve.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from make import synthetic

from formulations import Settings, solve
from formulations.settings import TracePoint


class Printer:
    """Prints every improvement; asks the solver to stop once the gap is small enough."""

    def __init__(self, target: float) -> None:
        self.stop = threading.Event()
        self._target = target
        self._lock = threading.Lock()
        self._plans: list[int] = []
        self._bounds: list[int] = []

    def __call__(self, point: TracePoint) -> None:
        """Take one point of the trace, from any thread."""
        with self._lock:
            say({"point": [point.seconds, point.objective, point.bound, point.source]})
            self._plans += [v for v in [point.objective] if v is not None]
            self._bounds += [v for v in [point.bound] if v is not None]
            if self._plans and self._bounds:
                best = min(self._plans)
                if best - max(self._bounds) <= self._target * abs(best):
                    self.stop.set()


def say(line: dict[str, object]) -> None:
    """One line of JSON, at once."""
    print(json.dumps(line), flush=True)


def main() -> None:
    """``one.py SIZE FORMULATION SECONDS WORKERS TARGET_GAP``."""
    size, formulation, seconds, workers, target = sys.argv[1:]
    tables, ranks = (int(part) for part in size.split("x"))
    begin = time.perf_counter()
    instance = synthetic(tables, ranks)
    say({"built": round(time.perf_counter() - begin, 2), "options": instance.num_options})
    printer = Printer(float(target))
    settings = Settings(
        time_limit=float(seconds), workers=int(workers), stop=printer.stop, on_progress=printer,
        certificate=formulation == "auto",  # the whole models are shown with their own bound
    )  # fmt: skip
    outcome = solve(instance, formulation, settings)
    source = outcome.bound_source
    say(
        {
            "status": outcome.status.value,
            "stopped_by": outcome.stopped_by.value,
            "seconds": round(outcome.seconds, 2),
            "objective": outcome.objective,
            "bound": outcome.bound,
            "bound_by": None if source is None else source.method,
            "certified_bound": outcome.certified_bound,
            "gap": outcome.gap,
        }
    )


if __name__ == "__main__":
    main()
