"""Ctrl-C in Python: the first keeps the best plan, the second abandons it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from formulations import Settings, StoppedBy, solve
from formulations.runtime.interrupt import interruptible
from formulations.settings import TracePoint
from milp_planner import plan
from scenarios import catalog


@pytest.fixture(autouse=True)
def as_in_a_notebook() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, whatever the shell that started the tests made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press(seconds: float) -> None:
    """Press Ctrl-C after some seconds."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_the_first_stops_the_job_and_keeps_its_answer() -> None:
    """Nothing is raised, and the flag is cleared: the same settings serve for another solve."""
    stop = threading.Event()
    press(0.2)
    assert interruptible(lambda: stop.wait(20), stop) is True
    assert not stop.is_set()


def test_the_second_gives_it_up() -> None:
    """KeyboardInterrupt comes at once, the flag stays set for the job that still runs."""
    stop, free = threading.Event(), threading.Event()
    press(0.1)
    press(0.4)
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: free.wait(20), stop)
    assert stop.is_set() and time.perf_counter() - start < 10
    free.set()


def test_errors_are_the_callers() -> None:
    """An exception that the job raises reaches the caller."""
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, threading.Event())


def test_outside_the_main_thread_it_is_a_call() -> None:
    """Where Python raises no KeyboardInterrupt, the job runs in the calling thread."""
    seen: list[threading.Thread] = []
    inner = threading.Thread(
        target=lambda: interruptible(
            lambda: seen.append(threading.current_thread()), threading.Event()
        )
    )
    inner.start()
    inner.join()
    assert seen == [inner]


@pytest.mark.parametrize("formulation", ["auto", "cpsat"])
def test_a_notebooks_interrupt_returns_the_best_plan(formulation: str) -> None:
    """An interrupted plan() hands back a plan that passed the check, long before its limit."""
    model = catalog.find_model("generated:tables=60,seed=3,kind=torchrec")
    settings = Settings(time_limit=300, workers=1)
    start = time.perf_counter()
    pressed: list[TracePoint] = []

    def press_once(point: TracePoint) -> None:
        if point.objective is not None and not pressed:
            pressed.append(point)
            os.kill(os.getpid(), signal.SIGINT)

    found = plan(
        model, catalog.find_cluster("8xh100"), formulation=formulation, settings=settings,
        on_improvement=press_once,
    )  # fmt: skip
    assert found.outcome.stopped_by is StoppedBy.INTERRUPTED and found.tables
    assert found.verdict is not None and found.verdict.feasible
    assert time.perf_counter() - start < 100
    settings_again = Settings(time_limit=1, workers=1, stop=settings.stop)
    assert solve(found.instance, "greedy", settings_again).stopped_by is not StoppedBy.INTERRUPTED
