"""CP-SAT's adapter: integers all the way, presolve off for claims, callers' stops obeyed.

The one clock: seconds, or work that is only counted.
"""

import os
import signal
import threading
import time

import numpy as np
import pytest

from formulations import cpsat
from formulations.clock import Clock, Limits, OutOfTime
from formulations.cpsat import Asked, Found, Use, solve_cpsat
from formulations.model.linear import LinearModel
from formulations.result.outcome import StoppedBy, why_stopped
from formulations.runtime.timing import Stopwatch
from formulations.settings import Settings, TracePoint
from formulations.solve import solve
from tests.formulations.examples import ANY, EVERY, at, built


def market_split(rows: int = 5, columns: int = 40) -> LinearModel:
    """Equality knapsacks that no solver settles soon (Cornuéjols & Dawande, IPCO 1998)."""
    rng, model = np.random.default_rng(0), LinearModel()
    chosen = model.columns(columns)
    spare = model.columns(2 * rows, upper=10**6)
    for row, (over, under) in enumerate(spare.reshape(rows, 2)):
        sizes = rng.integers(0, 100, columns)
        half = int(sizes.sum()) // 2
        model.row(("split", row), [*chosen, over, under], [*sizes.tolist(), -1, 1], half, half)
    model.minimise(spare, np.ones(2 * rows, dtype=np.int64))
    return model


def knapsack(costs: list[int], weights: list[int], room: int, offset: int = 0) -> LinearModel:
    """Minimise −Σ cost within a room."""
    model = LinearModel()
    columns = model.columns(len(costs))
    model.row(("room",), columns, weights, high=room)
    model.minimise(columns, [-c for c in costs], offset)
    return model


def test_bounds_beyond_doubles_are_exact() -> None:
    """An optimum that no double holds is reported to the last digit, bound and value."""
    costs = [2**55 + 1, 2**55 + 3, 2**55 + 5]
    answer = solve_cpsat(knapsack(costs, [1, 1, 1], 2, offset=7), Limits(seconds=20))
    best = 7 - (2**55 + 3) - (2**55 + 5)
    assert (answer.status, answer.value, answer.bound) == (Found.OPTIMAL, best, best)


def test_an_optimum_of_zero_is_proved() -> None:
    """An optimum of 0 is a proved bound, not mistaken for the 0 of a search that never began."""
    model = knapsack([3, 4], [1, 1], 0)
    answer = solve_cpsat(model, Limits(seconds=20))
    assert (answer.status, answer.value, answer.bound) == (Found.OPTIMAL, 0, 0)
    stopped = solve_cpsat(market_split(), Limits(seconds=0.0))
    assert stopped.bound is not None and stopped.bound <= 0
    lower = knapsack([3, 4], [1, 1], 2)
    bound = solve_cpsat(lower, Limits(seconds=0.0)).bound
    assert bound is not None and bound <= -7


def test_a_scaled_model_speaks_in_true_cost() -> None:
    """Value and bound are multiplied by the model's scale."""
    model = knapsack([3, 4], [1, 1], 1)
    model.scale = 8
    answer = solve_cpsat(model, Limits(seconds=20))
    assert (answer.value, answer.bound) == (-32, -32)


def test_rows_beyond_62_bits_are_weakened_and_said_so() -> None:
    """A row that CP-SAT cannot add up still forbids what breaks it by far."""
    size = 2**60
    answer = solve_cpsat(knapsack([1] * 8, [size] * 8, 3 * size), Limits(seconds=20))
    assert answer.relaxed and answer.bound is not None and answer.bound <= -3
    assert answer.value == -3
    assert not solve_cpsat(knapsack([1], [1], 1), Limits(seconds=20)).relaxed


def test_an_empty_row_that_cannot_hold_is_infeasible() -> None:
    """A table without candidates leaves a row 0 = 1, which makes the model infeasible."""
    model = LinearModel()
    model.columns(1)
    model.row(("option", 0), [], [], 1, 1)
    assert solve_cpsat(model, Limits(seconds=20)).status == Found.INFEASIBLE


def test_plans_claim_nothing() -> None:
    """With presolve on, an optimum is only a plan without a bound, and infeasible is unknown."""
    model = knapsack([3, 4], [1, 1], 1)
    answer = solve_cpsat(model, Limits(seconds=20), asked=Asked(Use.PLANS))
    assert (answer.status, answer.value, answer.bound) == (Found.FEASIBLE, -4, None)
    model.row(("never",), [0], [1], low=2)
    answer = solve_cpsat(model, Limits(seconds=20), asked=Asked(Use.PLANS))
    assert (answer.status, answer.bound) == (Found.UNKNOWN, None)


def test_presolve_is_off_for_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a use that claims nothing keeps CP-SAT's presolve; CP-SAT never catches Ctrl-C."""
    seen = []
    configure = cpsat._configure

    def spy(parameters: object, limits: Limits, asked: Asked) -> None:
        configure(parameters, limits, asked)
        seen.append((parameters.cp_model_presolve, parameters.catch_sigint_signal))  # type: ignore[attr-defined]

    monkeypatch.setattr(cpsat, "_configure", spy)
    for use in Use:
        hint = np.asarray([0, 1])
        solve_cpsat(knapsack([3, 4], [1, 1], 1), Limits(seconds=5, work=1), hint, Asked(use))
    assert seen == [(False, False), (True, False)]


def test_a_stop_flag_ends_the_search() -> None:
    """A flag set beforehand ends, without a proof, a search that would take its whole limit."""
    stop = threading.Event()
    stop.set()
    answer = solve_cpsat(market_split(), Limits(seconds=600, stop=stop))
    assert answer.status in (Found.UNKNOWN, Found.FEASIBLE)


def test_values_and_bounds_are_told_on_the_way() -> None:
    """Every better solution and bound reaches the caller, the last ones being the answer's."""
    values: list[int] = []
    bounds: list[int] = []
    model = knapsack([3, 5, 9, 11, 14], [2, 3, 5, 6, 7], 12)
    asked = Asked(on_values=lambda v: values.append(model.value(v)), on_bound=bounds.append)
    answer = solve_cpsat(model, Limits(seconds=20), np.zeros(5, dtype=np.int64), asked)
    assert values and values[-1] == answer.value
    assert all(b <= answer.value for b in bounds)


@pytest.mark.parametrize("use", list(Use))
def test_ctrl_c_stays_ours(use: Use) -> None:
    """While CP-SAT searches, an interrupt reaches our handler, which keeps the best plan."""
    heard = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: heard.set())
    try:
        limits = Limits(seconds=60, stop=heard)
        hint = np.zeros(50, dtype=np.int64)
        asked = (market_split(), limits, hint, Asked(use))
        thread = threading.Thread(target=solve_cpsat, args=asked)
        thread.start()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)
        thread.join(30)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard.is_set() and not thread.is_alive()


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
    tables = []
    for i in range(18):
        size = 5 + (7 * i) % 11
        half = at(ANY, 50 + 9 * i, count=2, distinct=True, hbm=size // 2 + 1)
        rows = {f"r{extra}": at(EVERY, 100 + 17 * i, hbm=2 + extra) for extra in range(2)}
        tables.append({"w": at(ANY, 90 + 13 * i, hbm=size), "c": half} | rows)
    instance = built(tables, machines=[[0, 1, 2], [3, 4]], hbm=60)
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
