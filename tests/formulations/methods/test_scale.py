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
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status
from formulations.search.parameters import DEFAULT, Parameters
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def run(instance: Instance, **changes: object) -> Outcome:
    """Solve with one worker within a little work."""
    base = Settings(time_limit=120.0, work_limit=0.3, workers=1)
    return solve(instance, "scale", replace(base, **changes))  # type: ignore[arg-type]


def many(tables: int = 24, ranks: int = 6, objective: str = "busiest_rank") -> Instance:
    """Tables with a fast large, a slow small and a spread option on two machines."""
    half = ranks // 2
    builder = InstanceBuilder(
        [list(range(half)), list(range(half, ranks))],
        ["fwd", "bwd"],
        [("hbm", "rank", 5 * tables // 2), ("ddr", "machine", 8 * tables)],
        objective,
    )
    rng = np.random.default_rng(7)
    for table in range(tables):
        size, cost = int(rng.integers(5, 40)), int(rng.integers(20, 90))
        builder.add_table(f"t{table}")
        fast = Shard({"hbm": size}, [cost, cost // 2])
        slow = Shard({"hbm": size // 4, "ddr": size}, [3 * cost, 2 * cost])
        part = Shard({"hbm": -(-size // ranks)}, [cost // 3, cost // 3])
        builder.add_option("fast", [Block(Where.ANY_RANK, [fast])])
        builder.add_option("slow", [Block(Where.ANY_RANK, [slow])])
        builder.add_option("spread", [Block(Where.EVERY_RANK, [part])])
        builder.add_option("machine", [Block(Where.ONE_MACHINE, [part])])
    return builder.build()


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


@pytest.mark.parametrize("objective", [o.value for o in Objective])
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


def test_no_option_left_is_infeasible() -> None:
    """A table none of whose options fits proves that there is no plan."""
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 5)])
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [1])])])
    assert run(builder.build()).status == Status.INFEASIBLE


def test_too_little_memory_is_proved_infeasible() -> None:
    """Three shards of 6: two ranks of 8 are refuted by prices, three of 5, 9 and 9 by search."""
    for capacity in ([8, 8], [9, 9, 5]):
        builder = InstanceBuilder(
            [list(range(len(capacity)))], ["p"], [("hbm", "rank", capacity)], "busiest_rank"
        )
        for table in "abc":
            builder.add_table(table)
            builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [1])])])
        assert run(builder.build(), work_limit=2.0).status == Status.INFEASIBLE


def _instance(where: Where, tables: int = 3) -> Instance:
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    for table in range(tables):
        builder.add_table(f"t{table}")
        builder.add_option("o", [Block(where, [Shard({"hbm": 1}, [5])])])
        builder.add_option("worse", [Block(where, [Shard({"hbm": 1}, [6])])])
    return builder.build()


def test_small_instances_are_solved_exactly() -> None:
    """Three shards of cost 5 on four ranks: proved at 5, under the name the caller asked for."""
    outcome = solve(_instance(Where.ANY_RANK), "auto", Settings(workers=1, time_limit=20))
    assert outcome.status == "optimal"
    assert outcome.objective == 5
    assert outcome.formulation == "auto"


def test_fixed_places_go_to_the_exact_model() -> None:
    """Where only options are chosen, not places, the exact model answers."""
    outcome = solve(_instance(Where.EVERY_RANK), "auto", Settings(workers=1, time_limit=20))
    assert (outcome.status, outcome.objective, outcome.solver) == ("optimal", 15, "CP-SAT")


def test_the_plan_is_polished() -> None:
    """Of options with the same busiest rank, the cheap one that uses little memory is chosen."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    builder.add_table("busy")
    builder.add_option("o", [Block([0], [Shard({"hbm": 1}, [9])])])
    builder.add_table("free")
    builder.add_option("hungry", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [2])])])
    builder.add_option("modest", [Block(Where.ANY_RANK, [Shard({"hbm": 1}, [3])])])
    builder.add_option("frugal", [Block(Where.ANY_RANK, [Shard({"hbm": 3}, [2])])])
    instance = builder.build()
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
