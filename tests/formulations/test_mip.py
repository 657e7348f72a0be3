"""The linear model through PuLP against the oracle."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from formulations.check import check
from formulations.instance import Instance
from formulations.mip import solve as solve_mip
from formulations.outcome import Outcome, Status
from formulations.settings import Clock, Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances


def solve(instance: Instance, solver: str = "highs", **wishes: object) -> Outcome:
    """Solve without limits on one worker."""
    wanted = Settings(
        **{"time_limit": None, "workers": 1, "options": {"solver": solver}, **wishes}  # type: ignore[arg-type]
    )
    return solve_mip(instance, wanted, Clock(wanted))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_highs_equals_brute_force(instance: Instance) -> None:
    """Status and objective are the oracle's; the bound says it is floating point."""
    truth = brute_force(instance)
    outcome = solve(instance)
    if truth.objective is None:
        assert outcome.status == Status.INFEASIBLE
        return
    assert outcome.status == Status.OPTIMAL
    assert outcome.objective == outcome.bound == truth.objective
    assert outcome.bound_source is not None and not outcome.bound_source.exact
    assert outcome.placement is not None
    assert check(instance, outcome.placement).feasible


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_cbc_equals_brute_force(instance: Instance) -> None:
    """CBC finds the oracle's objective; it claims no bound, so nothing is called optimal."""
    truth = brute_force(instance)
    outcome = solve(instance, "cbc")
    if truth.objective is None:
        assert outcome.status == Status.INFEASIBLE
        return
    assert outcome.status == Status.FEASIBLE
    assert outcome.objective == truth.objective
    assert outcome.bound is None and outcome.gap is None
