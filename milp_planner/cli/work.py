"""Run a solve while the terminal is served: live progress on stderr, Ctrl-C keeps the best plan."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from formulations.settings import Settings, TracePoint

T = TypeVar("T")
_TICK = 0.1
_HANDLERS: dict[int, Any] = {}


def let_go() -> None:
    """Give signals back to whoever had them before the first job of this command."""
    while _HANDLERS:
        signal.signal(*_HANDLERS.popitem())


class Work:
    """One interruptible job with a line of live progress, which begins with ``label``.

    ``unit`` is the time unit of objectives. A job that ``prepares`` has nothing to keep until
    :meth:`begin` is called: an interruption then abandons it at once.
    """

    def __init__(self, label: str, unit: str = "ps", prepares: bool = False) -> None:
        self.label = label
        self.interrupted = False
        self._prepares = prepares
        self._unit = unit
        self._stop = threading.Event()
        self._point: TracePoint | None = None
        self._start = time.perf_counter()

    def settings(self, settings: Settings) -> Settings:
        """The same settings, watched: progress comes to this line, Ctrl-C goes to the solver."""
        return replace(settings, stop=self._stop, on_progress=self._note)

    def run(self, job: Callable[[], T]) -> T:
        """Do the job in a thread of its own and wait for it.

        The first Ctrl-C (or SIGTERM) asks the solver to stop and hand back its best plan; the
        second abandons the job. One that comes later, while the answer is written, is noted in
        ``interrupted`` alone; :func:`let_go` ends that.
        """
        box: dict[str, object] = {}

        def body() -> None:
            try:
                box["result"] = job()
            except BaseException as error:  # handed to the caller's thread below
                box["error"] = error

        thread = threading.Thread(target=body, daemon=True, name=self.label)
        self._listen()
        with self._display() as refresh:
            thread.start()
            while thread.is_alive():
                thread.join(_TICK)
                refresh()
        if isinstance(error := box.get("error"), BaseException):
            raise error
        return box["result"]  # type: ignore[return-value]

    def begin(self, *label: str) -> None:
        """Start a new line of progress: what is known so far belongs to something else."""
        self.label = ", minimising ".join(label)
        self._prepares = False
        self._point = None

    def _note(self, point: TracePoint) -> None:
        """Keep the newest of what is known (called from solver threads)."""
        known = self._point
        if known is not None:
            objective = known.objective if point.objective is None else point.objective
            bound = known.bound if point.bound is None else point.bound
            point = replace(point, objective=objective, bound=bound)
        self._point = point

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.interrupted or self._prepares:
            raise KeyboardInterrupt
        self.interrupted = True
        self._stop.set()

    def _listen(self) -> None:
        """Take signals until the command ends: what was found is still to be written."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, self._on_signal)
            _HANDLERS.setdefault(number, before)

    @contextmanager
    def _display(self) -> Iterator[Callable[[], None]]:
        from milp_planner.cli.console import err

        console = err()
        if not console.is_terminal:
            yield lambda: None
            return
        from rich.text import Text

        with console.status(Text(self._line()), spinner="line") as status:
            yield lambda: status.update(Text(self._line()))

    def _line(self) -> str:
        from formulations.result.outcome import gap_between
        from milp_planner.drawing.units import show_cost, show_gap

        parts = [self.label, f"{time.perf_counter() - self._start:.1f} s"]
        if self.interrupted:
            parts.append("stopping, keeping the best plan (Ctrl-C again abandons it)")
        point = self._point
        if point is not None:
            parts.append(f"best {show_cost(point.objective, self._unit)}")
            parts.append(f"bound {show_cost(point.bound, self._unit)}")
            gap = gap_between(point.objective, point.bound)
            if gap is not None:
                parts.append(f"gap {show_gap(gap)}")
        return "  ".join(parts)
