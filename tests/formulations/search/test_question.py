"""Bounds from aggregate integer programs never exceed brute force."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings

from formulations.clock import Limits
from formulations.evidence.verify import certifies
from formulations.instance import Instance, Objective, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.facts import own_cost
from formulations.model import partition
from formulations.presolve import usable
from formulations.proof.prove import prove
from formulations.search.question import APART, POOLED, ask
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_pooled_and_machine_bounds(instance: Instance) -> None:
    """Pooled and by machine: both at or below the optimum."""
    truth = brute_force(instance).objective
    if truth is None:
        return
    for question in (POOLED, APART):
        result = ask(question, instance, Limits(seconds=10))
        assert not result.infeasible
        assert result.bound is None or result.bound <= truth


@LOOSE
@given(instances())
def test_bounds_without_lists(instance: Instance) -> None:
    """Lists that tell no ranks apart leave bounds true: of integer programs, and certified ones."""
    truth = brute_force(instance).objective
    if truth is None:
        return
    with patch.object(partition, "MOST_LISTED", 0), patch.object(partition, "FEW_LISTS", 1.0):
        result = ask(POOLED, instance, Limits(seconds=10))
        assert not result.infeasible
        assert result.bound is None or result.bound <= truth
        certificate = prove(replace(instance), truth)
    assert certificate is None or certificate.target is None or certificate.target <= truth
    assert certificate is None or certifies(instance, certificate)


@LOOSE
@given(instances())
def test_own_cost_and_use(instance: Instance) -> None:
    """The optimum uses usable options only, and costs at least what each costs by itself."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None:
        return
    assert usable(instance)[truth.placement.options].all()
    if instance.objective != Objective.TOTAL and instance.num_tables:
        assert own_cost(instance)[truth.placement.options].max() <= truth.objective


def test_machines_apart_tells_machines() -> None:
    """Two tables that fill a machine each go to different ones; one on both is told none."""
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("ddr", "machine", 12)], "busiest_rank")
    for name, ranks in (("a", [2, 3]), ("b", None)):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"ddr": 10}, [5])], among=ranks)])
    builder.add_table("c")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"ddr": 2}, [5])], count=2)])
    builder.add_table("d")
    builder.add_option("o", [Block([0], [Shard({}, [1])])])
    instance = builder.build()
    machines = ask(APART, instance, Limits(seconds=10)).machines
    assert machines is not None
    assert machines.tolist() == [1, 0, -1, -1]
