"""Interruptible work: progress reaches the line, Ctrl-C reaches the solver, errors reach the
caller."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from formulations.clock import Clock
from formulations.settings import Settings
from milp_planner.cli.console import Work, let_go


@pytest.fixture(autouse=True)
def handlers_go_back() -> Iterator[None]:
    """Restores signal handlers, as at the end of every command."""
    yield
    let_go()


def test_result_and_error_come_back_to_the_caller() -> None:
    """The job runs in another thread; the caller gets its result or its error."""
    assert Work("job").run(lambda: threading.current_thread().name) == "job"

    def fail() -> None:
        raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        Work("job").run(fail)


def test_first_interruption_stops_the_solver_and_keeps_its_answer() -> None:
    """Ctrl-C sets the stop flag; the job's last answer is returned."""
    before = signal.getsignal(signal.SIGINT)  # a shell ignores SIGINT for background processes
    work = Work("job")
    settings = work.settings(Settings())

    def job() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        assert settings.stop.wait(10)
        return "best so far"

    assert work.run(job) == "best so far"
    assert work.interrupted
    let_go()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interruption_while_the_answer_is_written() -> None:
    """After the job is done, one Ctrl-C is recorded but raises nothing: files are written."""
    work = Work("job")
    assert work.run(lambda: "found") == "found" and not work.interrupted
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    assert work.interrupted


def test_second_interruption_abandons_the_job() -> None:
    """A solver that ignores the stop flag cannot hold the user up."""
    work = Work("job")
    release = threading.Event()

    def job() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        release.wait(10)

    with pytest.raises(KeyboardInterrupt):
        work.run(job)
    release.set()


def test_interrupted_before_there_is_anything_to_keep() -> None:
    """While inputs are priced, the first Ctrl-C is enough; once solving has begun, it is not."""
    work, release = Work("pricing", prepares=True), threading.Event()

    def job() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return release.wait(10)

    with pytest.raises(KeyboardInterrupt):
        work.run(job)
    release.set()
    work = Work("pricing", prepares=True)
    work.begin("cpsat")
    assert work.run(job) and work.interrupted


def test_the_line_shows_incumbent_bound_and_gap() -> None:
    """When one side improves, the line keeps what is known of the other."""
    work = Work("cpsat")
    clock = Clock(work.settings(Settings()))
    clock.record(2_000_000_000, None, "hint")
    clock.record(None, 1_500_000_000, "bound")
    assert "best 2 ms  bound 1.5 ms  gap 25%" in work._line()
    work.begin("mip", "total")
    assert work._line().startswith("mip, minimising total") and "best" not in work._line()
