"""The exact CP-SAT model against the oracle."""

import threading

import pytest
from hypothesis import HealthCheck, given, settings

import formulations
from formulations.clock import Clock
from formulations.errors import UnsupportedInstance
from formulations.goals import seek
from formulations.instance import Instance, Objective
from formulations.methods.exact import solve as solve_exact
from formulations.result.check import check, compute_loads
from formulations.result.outcome import Outcome, Status, StoppedBy
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, at, built
from tests.formulations.strategies import instances


def solve(instance: Instance, **wishes: object) -> Outcome:
    """Solve without limits on one worker."""
    wanted = Settings(**{"time_limit": None, "workers": 1, "certificate": False, **wishes})  # type: ignore[arg-type]
    return solve_exact(instance, wanted, Clock(wanted))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_equals_brute_force(instance: Instance) -> None:
    """Status and objective are the oracle's, the bound meets the objective, the plan passes."""
    truth = brute_force(instance)
    outcome = solve(instance, polish=False)
    if truth.objective is None:
        assert outcome.status == Status.INFEASIBLE
        return
    assert outcome.status == Status.OPTIMAL
    assert outcome.objective == outcome.bound == truth.objective
    assert outcome.placement is not None
    assert check(instance, outcome.placement).feasible


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_hints_keep_the_optimum(instance: Instance) -> None:
    """Started from the oracle's plan, in any naming of ranks: still the optimum."""
    truth = brute_force(instance)
    outcome = solve(instance, hint=truth.placement)
    assert outcome.objective == truth.objective
    if truth.placement is not None and instance.objective != Objective.TOTAL:
        assert outcome.placement is not None
        plans = (outcome.placement, truth.placement)
        after, before = (compute_loads(instance, plan) for plan in plans)
        assert after.cost.sum() + after.unplaced_cost.sum() <= (
            before.cost.sum() + before.unplaced_cost.sum()
        )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances(objectives=[*Objective][1:]))
def test_a_scaled_objective_still_bounds(instance: Instance) -> None:
    """Forced to divide costs, the bound stays below the oracle's optimum, the plan above it."""
    truth = brute_force(instance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formulations.model.build.MOST_COST", 40)
        outcome = solve(instance)
    if truth.objective is None:
        assert outcome.status == Status.INFEASIBLE
        return
    assert outcome.bound is not None and outcome.objective is not None
    assert outcome.bound <= truth.objective <= outcome.objective


@pytest.mark.parametrize("symmetry", [True, False])
def test_symmetry_does_not_change_the_answer(symmetry: bool) -> None:
    """Five shards of 3 … 7 on three equal ranks: the busiest carries 9 (25 / 3, rounded up)."""
    outcome = solve(_shards([3, 4, 5, 6, 7]), options={"symmetry": symmetry})
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 9)


def _shards(costs: list[int], ranks: int = 3) -> Instance:
    return built([at(ANY, cost) for cost in costs], machines=[range(ranks)])


def _hard() -> Instance:
    """Sixty shards on seven ranks with costs of nine digits: no proof within seconds."""
    return _shards([10**8 + (7919 * i * i) % 10**8 for i in range(60)], ranks=7)


def test_a_set_stop_flag_returns_the_best_plan() -> None:
    """A solve interrupted at its first plan returns a plan and says why it stopped."""
    stop = threading.Event()
    outcome = solve(_hard(), stop=stop, on_progress=lambda _: stop.set())
    assert outcome.status == Status.FEASIBLE
    assert outcome.stopped_by == StoppedBy.INTERRUPTED
    assert outcome.placement is not None


def test_a_time_limit_is_named() -> None:
    """Out of time with a plan: feasible, stopped by the time limit, bound below the plan. Recorded
    plans never get worse, recorded bounds never pass the last plan."""
    wishes = Settings(time_limit=1.0, workers=1, certificate=False)
    clock = Clock(wishes)
    outcome = solve_exact(_hard(), wishes, clock)
    assert (outcome.status, outcome.stopped_by) == (Status.FEASIBLE, StoppedBy.TIME_LIMIT)
    assert outcome.bound is not None and outcome.objective is not None
    assert outcome.bound < outcome.objective
    plans = [p.objective for p in clock.trace if p.objective is not None]
    bounds = [p.bound for p in clock.trace if p.bound is not None]
    assert plans and plans == sorted(plans, reverse=True) and plans[-1] == outcome.objective
    assert bounds and max(bounds) <= plans[-1]


def test_work_limits_are_named_and_reproducible() -> None:
    """The same deterministic work with one worker and seed gives the same plan."""
    first, second = (solve(_hard(), work_limit=0.3, seed=3) for _ in range(2))
    assert first.stopped_by == StoppedBy.WORK_LIMIT
    assert first.objective == second.objective
    assert first.bound == second.bound


def _coprime(tables: int, options: int, room: int) -> Instance:
    """Tables whose options use about 2^52, all different, on one machine."""
    found = [{f"o{o}": at(EVERY, o, ddr=2**52 - options * t - o) for o in range(options)}
             for t in range(tables)]  # fmt: skip
    return built(found, "total", [[0]], ddr=room)


def test_the_proof_is_told_before_the_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the goals begin, plan and bound have met in the trace, in true costs."""
    told = []

    def improve(instance: Instance, outcome: Outcome, settings: Settings, clock: Clock) -> Outcome:
        told.append(clock.trace[-1].known)
        return outcome

    monkeypatch.setattr(seek, "improve", improve)
    outcome = formulations.solve(_shards([3, 4, 5, 6, 7]), "cpsat", Settings(workers=1))
    assert told == [(outcome.objective, outcome.objective)]


def test_numbers_beyond_62_bits_are_weighed_coarsely() -> None:
    """Rows beyond 62 bits are weakened; an instance that breaks even these is proved infeasible."""
    assert solve(_coprime(64, 16, 2**53 - 1)).status == Status.INFEASIBLE


def test_a_byte_that_62_bits_cannot_see_is_refused() -> None:
    """Room one byte short of the smallest use: refused in a sentence, not claimed infeasible."""
    least = (2**52 - 511) + (2**52 - 512 - 511)
    with pytest.raises(UnsupportedInstance, match="coarser unit"):
        solve(_coprime(2, 512, least - 1), options={"cores": False})


def test_a_proof_about_rounded_costs_leaves_no_proof() -> None:
    """Costs near 2^53 are halved for CP-SAT, whose optimum leaves a gap: no proof ended this."""
    outcome = solve(built([at(EVERY, 2**53 - 1)] * 10, machines=[range(8)]))
    assert (outcome.objective, outcome.bound) == (10 * (2**53 - 1), 10 * (2**53 - 2))
    assert (outcome.status, outcome.stopped_by) == (Status.FEASIBLE, StoppedBy.EXHAUSTED)
