"""Joint placement at scale: never better than the truth, never a bound above it, reproducible.

Which formulation ``auto`` picks.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from formulations import Settings, solve
from formulations.clock import Clock
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective, Where
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status
from formulations.search.parameters import DEFAULT, Parameters
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, MACHINE, MACHINES, at, built
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def run(instance: Instance, **changes: object) -> Outcome:
    """Solve with one worker within a little work."""
    base = Settings(time_limit=120.0, work_limit=0.3, workers=1)
    return solve(instance, "scale", replace(base, **changes))  # type: ignore[arg-type]


def many(tables: int = 24, ranks: int = 6, objective: str = "busiest_rank") -> Instance:
    """Tables with a fast large, a slow small and a spread option on two machines."""
    rng, found = np.random.default_rng(7), []
    for _ in range(tables):
        size, cost = int(rng.integers(5, 40)), int(rng.integers(20, 90))
        third, part = cost // 3, -(-size // ranks)
        found.append({
            "fast": at(ANY, cost, cost // 2, hbm=size),
            "slow": at(ANY, 3 * cost, 2 * cost, hbm=size // 4, ddr=size),
            "spread": at(EVERY, third, third, hbm=part),
            "machine": at(MACHINE, third, third, hbm=part),
        })  # fmt: skip
    machines = [range(ranks // 2), range(ranks // 2, ranks)]
    return built(found, objective, machines, phases=["fwd", "bwd"], hbm=5 * tables // 2,
                 ddr=8 * tables)  # fmt: skip


@LOOSE
@given(instances())
def test_between_bound_and_truth(instance: Instance) -> None:
    """Whatever is claimed of status, bound and objective agrees with brute force."""
    truth = brute_force(instance)
    outcome = run(instance)
    if truth.objective is None:
        assert outcome.status in (Status.INFEASIBLE, Status.UNKNOWN)
        return
    assert outcome.status != Status.INFEASIBLE
    for bound in (outcome.bound, outcome.certified_bound):
        assert bound is None or bound <= truth.objective
    if outcome.placement is not None:
        verdict = check(instance, outcome.placement)
        assert verdict.feasible
        assert outcome.objective == verdict.objectives[instance.objective.value]
        assert outcome.objective >= truth.objective
    if outcome.status == Status.OPTIMAL:
        assert outcome.objective == truth.objective


@FEW
@given(instances(objectives=[Objective.BUSIEST_RANK], fusion=False, constraints=False))
def test_small_instances_are_solved(instance: Instance) -> None:
    """Without fusion, pins or moves, small instances are solved, and proved if feasible."""
    truth = brute_force(instance)
    outcome = run(instance, work_limit=3.0)
    assert outcome.objective == truth.objective
    if truth.objective is not None:
        assert outcome.status == Status.OPTIMAL


@pytest.mark.parametrize(
    "objective",
    [pytest.param(o.value, marks=[pytest.mark.slow] * ("step" in o.value)) for o in Objective],
)
def test_reproducible_with_one_worker(objective: str) -> None:
    """Two runs with one worker and the same work limit end at the same plan and bound."""
    first, second = (run(many(objective=objective), work_limit=0.5, seed=3) for _ in range(2))
    assert first.placement is not None
    assert second.placement is not None
    assert (first.objective, first.bound) == (second.objective, second.bound)
    assert first.placement.options.tolist() == second.placement.options.tolist()
    assert first.placement.ranks[0][0].tolist() == second.placement.ranks[0][0].tolist()


def test_a_limit_on_the_whole_model_is_kept() -> None:
    """Above ``whole_columns`` no plan comes from the whole model, though it is small."""
    free, limited = (run(many(), options=o) for o in ({}, {"whole_columns": 1}))
    assert "cpsat" in {point.source for point in free.trace}
    assert limited.placement is not None
    assert "cpsat" not in {point.source for point in limited.trace}


def test_numbers_that_steer_the_search_can_be_set() -> None:
    """Options reach the parameters of the search; a list of another length is refused."""
    chosen = Parameters.of({"slack": 0.5, "heats": [0.1, 0.2], "symmetry": True})
    assert (chosen.slack, chosen.heats) == (0.5, (0.1, 0.2))
    assert chosen.first_turn == DEFAULT.first_turn
    with pytest.raises(InstanceError, match=r"'mix' is .* allowed: a list of 7, each a whole"):
        solve(many(), "scale", Settings(options={"mix": [1, 2]}))


def test_never_worse_than_the_hint() -> None:
    """A good plan given as a hint is kept or improved."""
    instance = many()
    good = run(instance, work_limit=0.5)
    again = run(instance, work_limit=0.05, hint=good.placement)
    assert good.objective is not None
    assert again.objective is not None
    assert again.objective <= good.objective


def test_two_workers_agree_with_the_check() -> None:
    """With two threads every plan of the trace beats the one before, and the last passes the check,
    at the claimed cost and not below the claimed bound."""
    instance = many(tables=30)
    outcome = run(instance, work_limit=None, time_limit=4.0, workers=2)
    told = [point.objective for point in outcome.trace if point.objective is not None]
    plans = list(dict.fromkeys(told))
    assert told == sorted(told, reverse=True) and len(plans) > 1
    assert outcome.placement is not None and outcome.bound is not None
    verdict = check(instance, outcome.placement)
    assert verdict.feasible
    assert verdict.objectives["busiest_rank"] == outcome.objective == plans[-1] >= outcome.bound


@pytest.mark.parametrize("capacity", [[5], [8, 8], [9, 9, 5]])
def test_too_little_memory_is_proved_infeasible(capacity: list[int]) -> None:
    """Three shards of 6: none fits into 5, two ranks of 8 are refuted by prices, three of 5, 9 and
    9 by search."""
    instance = built([at(ANY, 1, hbm=6)] * 3, machines=[range(len(capacity))], hbm=capacity)
    assert run(instance, work_limit=2.0).status == Status.INFEASIBLE


@pytest.mark.parametrize(("where", "cost"), [(ANY, 5), (EVERY, 15)])
def test_small_instances_are_solved_exactly(where: Where, cost: int) -> None:
    """Three shards of cost 5 on four ranks are proved at 5, under the name the caller asked for;
    where only options are chosen, not places, the exact model answers."""
    table = {"o": at(where, 5, hbm=1), "worse": at(where, 6, hbm=1)}
    instance = built([table] * 3, machines=MACHINES, hbm=10)
    outcome = solve(instance, "auto", Settings(workers=1, time_limit=20))
    assert (outcome.status, outcome.objective) == ("optimal", cost)
    assert (outcome.formulation, outcome.solver) == ("auto", "CP-SAT")


def test_the_plan_is_polished() -> None:
    """Of options with the same busiest rank, the cheap one that uses little memory is chosen."""
    free = {"hungry": at(ANY, 2, hbm=6), "modest": at(ANY, 3, hbm=1), "frugal": at(ANY, 2, hbm=3)}
    instance = built({"busy": at([0], 9, hbm=1), "free": free}, hbm=10)
    outcome = solve(instance, "auto", Settings(workers=1, time_limit=20))
    assert outcome.objective == 9 and outcome.placement is not None
    assert instance.option_names[int(outcome.placement.options[1])] == "frugal"


def test_time_held_back_does_not_remain() -> None:
    """A clock that holds seconds back shows them as remaining only afterwards."""
    clock = Clock(Settings(time_limit=100))
    with clock.holding_back(90):
        assert clock.remaining() < 10.1
    assert clock.remaining() > 90


@settings(max_examples=12, deadline=None)
@given(instance=instances())
def test_the_conductor_by_the_clock(instance: Instance) -> None:
    """With two workers and plenty of time ``scale`` proves the optimum or that no plan exists."""
    best = brute_force(instance).objective
    outcome = solve(instance, "scale", Settings(time_limit=60, workers=2))
    assert outcome.status == (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert outcome.objective == best
    assert best is None or outcome.bound == best
