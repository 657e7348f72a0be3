"""The oracle itself: by hand, and against the solver-free check."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.check import check
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances


def test_two_shards_part_when_one_rank_is_too_small() -> None:
    """Two shards of 6 on ranks of 10 must part, so the busiest rank has one of them."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [7])], count=2)])
    truth = brute_force(builder.build())
    assert truth.objective == 7
    assert truth.placement is not None
    assert sorted(truth.placement.to_lists(0)[0]) == [0, 1]


def test_infeasible_is_none() -> None:
    """A shard larger than every rank has no plan."""
    builder = InstanceBuilder([[0], [1]], ["p"], [("hbm", "rank", 5)], "total")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({"hbm": 6}, [1])])])
    assert brute_force(builder.build()).objective is None


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_agrees_with_check(instance: Instance) -> None:
    """The oracle's plan passes the check, at the objective that the oracle claims."""
    truth = brute_force(instance)
    if truth.placement is not None:
        verdict = check(instance, truth.placement)
        assert verdict.feasible, verdict.violations
        assert verdict.objectives[instance.objective.value] == truth.objective
