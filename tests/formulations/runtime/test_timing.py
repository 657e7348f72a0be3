"""Where the wall clock of a call goes."""

from __future__ import annotations

import pytest

from formulations.clock import Clock
from formulations.runtime.timing import CallTime, Stopwatch
from formulations.settings import Settings


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
