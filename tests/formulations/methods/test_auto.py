"""Which formulation ``auto`` picks."""

from __future__ import annotations

from hypothesis import given, settings

from formulations.clock import Clock
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.outcome import Status
from formulations.settings import Settings
from formulations.solve import solve
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances


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
