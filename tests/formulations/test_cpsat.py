"""The exact CP-SAT model against the oracle."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from formulations.check import check
from formulations.cpsat import solve as solve_cpsat
from formulations.instance import Instance
from formulations.outcome import Outcome, Status
from formulations.settings import Clock, Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances


def solve(instance: Instance, **wishes: object) -> Outcome:
    """Solve without limits on one worker."""
    wanted = Settings(**{"time_limit": None, "workers": 1, "certificate": False, **wishes})  # type: ignore[arg-type]
    return solve_cpsat(instance, wanted, Clock(wanted))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
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
