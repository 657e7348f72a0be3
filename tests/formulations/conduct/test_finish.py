"""The finishing pass keeps the objective, and prefers less host memory and fewer shards."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from formulations.conduct.finish import finished, wishes
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.check import check
from formulations.result.placement import Placement
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_it_costs_nothing_and_breaks_nothing(instance: Instance) -> None:
    """From an optimal plan it ends at an optimal plan, no table at a worse wish."""
    truth = brute_force(instance)
    if truth.placement is None:
        return
    plan = finished(instance, truth.placement)
    verdict = check(instance, plan)
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective
    rank = wishes(instance)
    assert (rank[plan.options] <= rank[truth.placement.options]).all()


def test_small_tables_leave_host_memory_and_stay_whole() -> None:
    """A small table in host memory comes to a rank with room, one cut in two becomes whole."""
    builder = InstanceBuilder(
        [[0, 1]], ["p"], [("hbm", "rank", 10), ("ddr", "machine", 10)], "busiest_rank"
    )
    builder.add_table("busy")
    builder.add_option("o", [Block([0], [Shard({"hbm": 4}, [9])])])
    for name in ("small", "cut"):
        builder.add_table(name)
        builder.add_option("host", [Block(Where.ANY_RANK, [Shard({"ddr": 2}, [1])])])
        builder.add_option("two", [Block(Where.ANY_RANK, [Shard({"hbm": 1}, [1])], count=2)])
        builder.add_option("one", [Block(Where.ANY_RANK, [Shard({"hbm": 2}, [2])])])
    instance = builder.build()
    options = np.asarray([0, 1, 5])
    before = Placement(options, [[np.asarray([0])], [np.asarray([1])], [np.asarray([1, 1])]])
    names = [instance.option_names[o] for o in finished(instance, before).options]
    assert names == ["o", "one", "one"]
