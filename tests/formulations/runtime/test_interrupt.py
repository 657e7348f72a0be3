"""Ctrl-C in Python: the first keeps the best plan, the second abandons it.

Where the wall clock of a call goes.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from formulations import Settings, StoppedBy, solve
from formulations.clock import Clock
from formulations.runtime.interrupt import interruptible
from formulations.runtime.timing import CallTime, Stopwatch
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


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test sets."""
    moment = [100.0]
    monkeypatch.setattr("formulations.runtime.timing.time.perf_counter", lambda: moment[0])
    return moment


def test_a_solve_ends_with_the_call_it_is_a_part_of(now: list[float]) -> None:
    """What the call spent before, such as pricing, is not left for the solve."""
    call = CallTime(10.0)
    now[0] += 7.0
    clock = Clock(Settings(time_limit=10.0, call=call))
    assert clock.remaining() == 3.0
    now[0] += 4.0
    assert clock.over() and call.left() == 0.0
    assert Clock(Settings(time_limit=10.0)).remaining() == 10.0


def test_a_stage_inside_another_belongs_to_the_outer_one(now: list[float]) -> None:
    """So the stages add up to the time of the call."""
    call = CallTime()
    with call.stage("search"):
        now[0] += 2.0
    with call.stage("fewer moves"):
        with call.stage("search"):
            now[0] += 3.0
        now[0] += 1.0
    assert call.told() == {"search": 2.0, "fewer moves": 4.0}


def test_compiling_counts_neither_for_the_limit_nor_for_a_stage(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It happens once on a machine, and is announced."""
    watch = Stopwatch()
    monkeypatch.setattr("formulations.runtime.timing.COMPILING", watch)
    call = CallTime(10.0)
    with call.stage("search"):
        with watch:
            now[0] += 30.0
        now[0] += 4.0
    assert (call.left(), call.compiling(), call.told()) == (6.0, 30.0, {"search": 4.0})
