"""Scenarios on the cores of this machine: one process for each core, with one solver worker each.

If a process dies (out of memory, a crash in a solver), only its own scenario fails and the process
is replaced. ``concurrent.futures`` would abandon all scenarios.
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

from milp_planner.request import SECONDS
from scenarios.batch.execute import execute, failure
from scenarios.batch.scenario import Scenario

Task = tuple[str, Scenario]
"""A scenario with its key."""

PATIENCE, GRACE = 10, 120.0
"""A process is killed after ten time limits plus two minutes, because its solver must hang."""
_TICK = 1.0


class LostProcess(RuntimeError):
    """A process ended, or was killed, before it returned a record."""


def run_local(
    tasks: Sequence[Task], workers: int, started: Callable[[Task], Task] = lambda task: task
) -> Iterator[dict[str, Any]]:
    """Yield records as they are finished.

    Parameters
    ----------
    tasks
    workers : int
        Number of processes.
    started : callable
        Called with each task just before it starts; returns it with the plan to start from.
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
    """Records that arrive within a moment; processes that have died are replaced."""
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
    """One process and its current scenario."""

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
        seconds = task[1].asked.time_limit or SECONDS
        self._deadline = time.monotonic() + PATIENCE * seconds + GRACE
        try:
            self.pipe.send(task)
        except OSError:
            return  # it has ended; fetching the record reports that

    def answer(self) -> dict[str, Any] | None:
        """The record, if it has arrived.

        Raises
        ------
        LostProcess
            When the process ended without one, or took far too long.
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
        """Kill the process."""
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """Solve scenarios from the pipe until it closes; Ctrl-C is left to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            key, scenario = pipe.recv()
            pipe.send(execute(scenario, key))
    except (EOFError, OSError):
        return
