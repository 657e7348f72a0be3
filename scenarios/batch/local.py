"""Scenarios on the cores of this machine: one process each core, one solver worker a process.

The processes are looked after one by one, so that one that dies (out of memory, a crash in a
solver) fails its own scenario and is replaced. ``concurrent.futures`` would give up all of them.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from typing import Any

from scenarios.batch.execute import execute, failure
from scenarios.batch.scenario import Scenario

Task = tuple[str, Scenario]
"""A scenario with its key."""

PATIENCE, GRACE = 10, 120.0
"""A process is ended after ten time limits and two minutes: its solver does not come back."""
_TICK = 1.0


class LostProcess(RuntimeError):
    """A process ended, or had to be ended, before it answered."""


def run_local(
    tasks: Sequence[Task], workers: int, started: Callable[[Task], Task] = lambda task: task
) -> Iterator[dict[str, Any]]:
    """Records in the order in which they are finished.

    Parameters
    ----------
    tasks
    workers : int
        Processes side by side.
    started : callable
        Says of a task, when its turn comes, what it starts from.
    """
    context = multiprocessing.get_context("spawn")
    pending = deque(tasks)
    pool: list[_Process] = []
    try:
        pool += [_Process(context) for _ in range(min(workers, len(pending)))]
        while pending or any(process.task for process in pool):
            for process in pool:
                if process.task is None and pending:
                    process.give(started(pending.popleft()))
            yield from _collect(pool, context)
    finally:
        for process in pool:
            process.end()


def _collect(pool: list[_Process], context: SpawnContext) -> Iterator[dict[str, Any]]:
    """What comes back within a moment; processes that are gone are replaced."""
    wait([process.pipe for process in pool if process.task], timeout=_TICK)
    for index, process in enumerate(pool):
        if process.task is None:
            continue
        try:
            record = process.answer()
        except LostProcess as error:
            key, scenario = process.task
            process.end()
            pool[index] = _Process(context)
            record = failure(scenario, key, error)
        if record is not None:
            yield record


class _Process:
    """One process and the scenario it is at."""

    def __init__(self, context: SpawnContext) -> None:
        self.pipe, theirs = context.Pipe()
        self.task: Task | None = None
        self._deadline = 0.0
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()  # so that the pipe breaks when the process ends

    def give(self, task: Task) -> None:
        """Send a scenario."""
        self.task = task
        self._deadline = time.monotonic() + PATIENCE * task[1].time_limit + GRACE
        try:
            self.pipe.send(task)
        except OSError:
            return  # it has ended; asking it for the answer says so

    def answer(self) -> dict[str, Any] | None:
        """The record, if it is there.

        Raises
        ------
        LostProcess
            When the process has ended without one, or has taken far too long.
        """
        try:
            if self.pipe.poll():
                record: dict[str, Any] = self.pipe.recv()
                self.task = None
                return record
        except (EOFError, OSError):
            self._process.join(timeout=5)
            raise LostProcess(f"its process ended with code {self._process.exitcode}") from None
        if time.monotonic() > self._deadline:
            raise LostProcess(f"no answer after {PATIENCE} time limits and {GRACE:g} seconds")
        return None

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """Solve what comes until the other side is gone; Ctrl-C is for the other side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            key, scenario = pipe.recv()
            pipe.send(execute(scenario, key))
    except (EOFError, OSError):
        return
