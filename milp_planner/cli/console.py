"""Output: JSON or drawings go to stdout, progress and warnings to stderr; work shows progress."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from milp_planner.errors import printable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

    from formulations.settings import Settings
    from milp_planner.features.plan.watch import Newest
    from milp_planner.request import Callbacks

WIDTH = 100


def out() -> Console:
    """Console on stdout, never wider than 100 columns so that pasted output stays readable."""
    console = _console()
    if console.width > WIDTH or not console.is_terminal:
        console.width = WIDTH
    return console


def err() -> Console:
    """Console on stderr."""
    return _console(stderr=True)


def _console(**options: bool) -> Console:
    """A console that prints text literally, without markup, emoji codes or escape sequences."""
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class Literal(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text if segment.control else printable(segment.text)
                yield segment._replace(text=text)

    return Literal(highlight=False, markup=False, emoji=False, **options)  # type: ignore[arg-type]


def tell(
    json: bool, value: Callable[[], object], drawn: Callable[[], Iterable[RenderableType]],
    *written: Path | None,
) -> None:  # fmt: skip
    """Print the answer as JSON, or draw it and name the files that were written."""
    if json:
        emit_json(value())
        return
    for part in drawn():
        out().print(part)
    for path in filter(None, written):
        out().print(f"written: {path}")


def emit_json(value: object) -> None:
    """Print one JSON value on stdout."""
    json.dump(value, sys.stdout, indent=1)
    sys.stdout.write("\n")


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

    def callbacks(self) -> Callbacks:
        """This line as the progress of a plan, and Ctrl-C as its stop flag."""
        from milp_planner.features.plan.watch import Newest
        from milp_planner.request import Callbacks

        self._newest = Newest()
        return Callbacks(on_improvement=self._newest, on_start=self.begin, stop=self._stop)

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
