"""Run a solve with live progress on stderr; Ctrl-C stops it and keeps the best plan."""

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
    from formulations.settings import Settings
    from milp_planner.features.plan.watch import Newest

T = TypeVar("T")
_TICK = 0.1
_HANDLERS: dict[int, Any] = {}


def let_go() -> None:
    """Restore the signal handlers from before the first job of this command."""
    while _HANDLERS:
        signal.signal(*_HANDLERS.popitem())


class Work:
    """One interruptible job with a line of live progress, which starts with ``label``.

    ``unit`` is the time unit of objectives. With ``prepares``, an interruption before :meth:`begin`
    abandons the job at once, as there is no plan to keep yet.
    """

    def __init__(self, label: str, unit: str = "ps", prepares: bool = False) -> None:
        self.label = label
        self.interrupted = False
        self._prepares = prepares
        self._unit = unit
        self._stop = threading.Event()
        self._newest: Newest | None = None
        self._start = time.perf_counter()

    def settings(self, settings: Settings) -> Settings:
        """The settings with this line as their progress and Ctrl-C as their stop flag."""
        from milp_planner.features.plan.watch import Newest

        self._newest = Newest()
        return replace(settings, stop=self._stop, on_progress=self._newest)

    def run(self, job: Callable[[], T]) -> T:
        """Do the job in a thread of its own and wait for it.

        The first Ctrl-C (or SIGTERM) asks the solver to stop and return its best plan; the second
        abandons the job. A later one, while the answer is written, only sets ``interrupted``, until
        :func:`let_go` is called.
        """
        box: dict[str, object] = {}

        def body() -> None:
            try:
                box["result"] = job()
            except BaseException as error:  # re-raised in the caller's thread
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
        """Start a new line of progress, as the figures so far belong to another solve."""
        self.label = ", minimising ".join(label)
        self._prepares = False
        if self._newest is not None:
            self._newest.point = None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.interrupted or self._prepares:
            raise KeyboardInterrupt
        self.interrupted = True
        self._stop.set()

    def _listen(self) -> None:
        """Keep handling signals until the command ends, as the result is still to be written."""
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
        from milp_planner.features.plan.watch import progress_line

        point = None if self._newest is None else self._newest.point
        parts = [self.label, progress_line(point, time.perf_counter() - self._start, self._unit)]
        if self.interrupted:
            parts.append("stopping, keeping the best plan (Ctrl-C again abandons it)")
        return "  ".join(parts)
