"""The one clock: seconds, or work that is only counted."""

import threading

import pytest

from formulations.clock import Clock, OutOfTime
from formulations.instance import Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.outcome import StoppedBy, why_stopped
from formulations.runtime.timing import Stopwatch
from formulations.settings import Settings, TracePoint
from formulations.solve import solve


def test_a_work_clock_moves_by_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds do not move a clock of work; its trace is in units of work."""
    clock = Clock(Settings(time_limit=None, work_limit=10.0))
    monkeypatch.setattr("formulations.runtime.timing.time.perf_counter", lambda: 1e9)
    assert (clock.now(), clock.remaining(), clock.share(0.5)) == (0.0, 10.0, 5.0)
    clock.spend(4.0)
    clock.record(7, 3, "test")
    assert clock.trace == [TracePoint(4.0, 7, 3, "test")]
    limits = clock.limits(100.0, seed=3, workers=2)
    assert (limits.seconds, limits.work, limits.seed, limits.workers) == (None, 6.0, 3, 2)
    clock.spend(6.0)
    assert clock.over() and why_stopped(clock) == StoppedBy.WORK_LIMIT
    with pytest.raises(OutOfTime):
        clock.check()


def test_a_wall_clock_is_moved_by_no_work() -> None:
    """Work is counted for people to read; only seconds end the run."""
    clock = Clock(Settings(time_limit=1000.0))
    clock.spend(5000.0)
    assert clock.work == 5000.0 and not clock.over()
    limits = clock.limits(2.5)
    assert (limits.seconds, limits.work) == (2.5, None)
    with clock.holding_back(990.0):
        assert clock.remaining() <= 10.0
        assert (clock.limits().seconds or 0) <= 10.0


def test_the_stop_flag_ends_either() -> None:
    """A set flag ends both kinds of clock, and the reason is an interruption."""
    for limit in (None, 5.0):
        stop = threading.Event()
        clock = Clock(Settings(time_limit=None, work_limit=limit, stop=stop))
        assert not clock.over() and clock.limits().stop is stop
        stop.set()
        assert clock.over() and why_stopped(clock) == StoppedBy.INTERRUPTED


def test_the_same_work_is_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """By work, the exact solve repeats plan, bound and trace, however the wall clock jumps."""
    builder = InstanceBuilder([[0, 1, 2], [3, 4]], ["p"], [("hbm", "rank", 60)], "busiest_rank")
    for index in range(18):
        builder.add_table(f"t{index}")
        size = 5 + (7 * index) % 11
        builder.add_option("w", [Block(Where.ANY_RANK, [Shard({"hbm": size}, [90 + 13 * index])])])
        half = Shard({"hbm": size // 2 + 1}, [50 + 9 * index])
        builder.add_option("c", [Block(Where.ANY_RANK, [half], count=2, distinct=True)])
        for extra in range(2):
            shard = Shard({"hbm": 2 + extra}, [100 + 17 * index])
            builder.add_option(f"r{extra}", [Block(Where.EVERY_RANK, [shard])])
    instance = builder.build()
    wishes = Settings(time_limit=None, work_limit=0.6, workers=1, certificate=False)
    runs = []
    for jump in (0.0, 50.0):
        wall = iter(range(10**9))
        monkeypatch.setattr(
            "formulations.runtime.timing.time.perf_counter",
            lambda wall=wall, jump=jump: next(wall) * jump,
        )
        runs.append(solve(instance, "cpsat", wishes))
    first, second = runs
    assert first.placement is not None and second.placement is not None
    assert first.trace == second.trace and first.bound == second.bound
    assert first.placement.options.tolist() == second.placement.options.tolist()
    assert [first.placement.to_lists(t) for t in range(18)] == [
        second.placement.to_lists(t) for t in range(18)
    ]


def test_compiling_is_not_counted_in_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty seconds of it leave the limit as it was, but a compiler that hangs does not end it."""
    now, watch = [1000.0], Stopwatch()
    monkeypatch.setattr("formulations.runtime.timing.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("formulations.runtime.timing.COMPILING", watch)
    with watch:
        now[0] += 5.0
    clock = Clock(Settings(time_limit=10.0))
    with watch, watch:  # two compilers at once are one delay
        now[0] += 30.0
        assert (clock.compiling(), clock.remaining(), clock.over()) == (30.0, 10.0, False)
    now[0] += 4.0
    assert (clock.compiling(), clock.remaining(), clock.seconds()) == (30.0, 6.0, 34.0)
    with watch:
        now[0] += 1000.0
        assert clock.over()
