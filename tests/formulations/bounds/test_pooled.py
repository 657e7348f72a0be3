"""Bounds from aggregate integer programs never exceed brute force."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from formulations.bounds.own import own_cost, usable
from formulations.bounds.pooled import exact_pooled_ip, machine_ip, pooled_ip
from formulations.clock import Limits
from formulations.instance import Instance, Objective
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_pooled_and_machine_bounds(instance: Instance) -> None:
    """HiGHS pooled, CP-SAT pooled and CP-SAT by machine: all at or below the optimum."""
    truth = brute_force(instance).objective
    found = [
        pooled_ip(instance),
        exact_pooled_ip(instance, Limits(seconds=10)),
        machine_ip(instance, Limits(seconds=10)),
    ]
    for result in found:
        if truth is None:
            continue
        assert not result.infeasible
        assert result.bound is None or result.bound <= truth


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
