"""One job in a process of its own: inputs on stdin, events on stdout, files in a folder.

The process ends when its stdin closes, so none outlives the service; SIGTERM ends the search and
keeps the best plan.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from formulations import InstanceError
from formulations.result.outcome import certified_gap, gap_between, standing
from formulations.settings import News as Progress
from formulations.settings import TracePoint
from milp_planner.errors import BadInput, FallsShort
from milp_planner.features.explain.page import draw_trace
from milp_planner.features.plan.cache import PlanCache
from milp_planner.features.plan.call import planned
from milp_planner.features.report.page import (
    ReportInfo,
    memory_section,
    render,
    report_of,
    strip,
    time_section,
)
from milp_planner.files import write_atomically, write_json
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations import exports
from milp_planner.integrations.replay.judge import judge
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import write_plan
from milp_planner.request import Callbacks, PlanRequest

PLAN, PICTURE, REPORT = "plan.json", "picture.json", "report.html"
#: Least seconds between two events.
APART = 0.2


class News:
    """Events as lines of JSON for the service; progress that comes too soon waits."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float]) -> None:
        self._write, self._clock = write, clock
        self._last, self._lock = -APART, threading.Lock()
        self._points: list[TracePoint] = []
        self._certified: int | None = None

    def tell(self, event: str, **values: Any) -> None:
        """Write one event."""
        with self._lock:
            self._write(json.dumps({"event": event, **values}) + "\n")

    def note(self, point: Progress) -> None:
        """Progress of a solve, from any thread: a cost that only falls, a bound that only rises."""
        last = self._points[-1] if self._points else point
        plans = [v for v in (last.objective, point.objective) if v is not None]
        bounds = [v for v in (last.bound, point.bound) if v is not None]
        best = TracePoint(
            point.seconds, min(plans, default=None), max(bounds, default=None), point.source
        )
        self._points.append(best)
        proved = [v for v in (self._certified, point.certified) if v is not None]
        self._certified = max(proved, default=None)
        if self._clock() - self._last >= APART:
            self._last = self._clock()
            drawing = draw_trace(self._points[-200:], best.seconds, "ps")
            self.tell(
                "progress", seconds=best.seconds, objective=best.objective, bound=best.bound,
                certified_bound=self._certified,
                certified_gap=gap_between(best.objective, self._certified),
                chart="" if drawing is None else drawing.render(),
            )  # fmt: skip


def solved(job: dict[str, Any], news: News, stop: threading.Event) -> tuple[Plan, bool]:
    """The plan of a job, and whether it came from the cache."""
    cache = PlanCache(job["cache"])
    inputs = {
        "model": Model.from_dict(job["model"], "model"),
        "cluster": Cluster.from_dict(job["cluster"], "cluster"), "cache": cache,
    }  # fmt: skip
    asked = {name: value for name, value in job.items() if name != "folder"}
    request = PlanRequest.of({**asked, **inputs})
    return planned(request, Callbacks(on_improvement=news.note, stop=stop)), cache.answered


def write_files(best: Plan, folder: Path) -> dict[str, Any]:
    """Write all files that clients can request later; returns the content of the ``done`` event."""
    write_plan(best, folder / PLAN)
    info = report_of(best)
    write_atomically(folder / REPORT, render(info))
    write_json(folder / PICTURE, picture_of(info))
    able, unable = [], {}
    for name in exports.FORMATS:
        try:
            settings = judge(best, name)[0].settings
            write_atomically(folder / f"{name}.txt", exports.write(best, name, settings))
            able.append(name)
        except (BadInput, FallsShort) as error:
            unable[name] = str(error)
    outcome = best.outcome
    return {
        "status": outcome.status.value, "standing": standing(outcome),
        "stopped_by": outcome.stopped_by.value, "objective": outcome.objective,
        "bound": outcome.bound, "certified_bound": outcome.certified_bound,
        "certified_gap": certified_gap(outcome), "seconds": outcome.seconds,
        "exports": able, "not_exported": unable,
    }  # fmt: skip


def picture_of(info: ReportInfo) -> dict[str, Any]:
    """The verdict's boxes, and memory and time as the report draws them."""
    sections = (memory_section(info), time_section(info))
    trace = draw_trace(info.trace, info.verdict.seconds, info.verdict.time_unit)
    return {
        "strip": [asdict(fact) for fact in strip(info.verdict)],
        "sections": [
            {
                "title": section.title,
                "key": [asdict(key) for key in section.key],
                "drawings": [asdict(part) for part in section.parts if part.svg],
            }
            for section in sections
            if section is not None
        ],
        "chart": "" if trace is None else trace.render(),
    }


def main() -> None:
    """Read a job and its inputs, two lines of stdin; solve it, write its files, report its end."""
    stdin = sys.stdin.buffer
    job = json.loads(stdin.readline()) | json.loads(stdin.readline())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    start, out = time.monotonic(), sys.stdout

    def write(line: str) -> None:
        out.write(line)
        out.flush()

    news = News(write, lambda: time.monotonic() - start)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(_answer(job, news, stop)), daemon=True)
    thread.start()
    while thread.is_alive():  # signal handlers run between two waits of the main thread
        thread.join(0.1)
    code = codes[0] if codes else 70
    out.flush()
    os._exit(code)  # a thread still in a solver must not keep the process alive


def _answer(job: dict[str, Any], news: News, stop: threading.Event) -> int:
    """Solve, write and report; returns the exit code."""
    try:
        best, known = solved(job, news, stop)
        news.tell("done", cached=known, **write_files(best, Path(job["folder"])))
    except (BadInput, InstanceError) as error:
        news.tell("failed", message=str(error))
        return 2
    except MemoryError:
        news.tell("failed", message="out of memory")
        return 3
    return 0


def _end_with_the_service() -> None:
    sys.stdin.buffer.read()
    os._exit(130)


if __name__ == "__main__":
    main()
