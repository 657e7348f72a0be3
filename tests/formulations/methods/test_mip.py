"""The linear model through PuLP against the oracle."""

import numpy as np
import pulp
import pytest
from hypothesis import HealthCheck, given, settings

from formulations import mip_exact
from formulations.clock import Clock
from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.instance.build import Block
from formulations.methods import mip
from formulations.methods.mip import solve as solve_mip
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status, StoppedBy
from formulations.result.placement import Placement
from formulations.settings import Settings
from formulations.solve import solve as solve_any
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, at, built
from tests.formulations.strategies import instances


def solve(instance: Instance, solver: str = "highs", **wishes: object) -> Outcome:
    """Solve without limits on one worker."""
    wanted = Settings(
        **{"time_limit": None, "workers": 1, "options": {"solver": solver}, **wishes}  # type: ignore[arg-type]
    )
    return solve_mip(instance, wanted, Clock(wanted))


@pytest.mark.parametrize(("solver", "examples"), [("highs", 100), ("cbc", 15)])
def test_equals_brute_force(solver: str, examples: int) -> None:
    """Small instances are decided: the oracle's optimum, or that there is no plan; by CBC, which
    gives no bound, as well."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(instances())
    def each(instance: Instance) -> None:
        decides(instance, solver)

    each()


def decides(instance: Instance, solver: str) -> None:
    """Assert that a solver has the oracle's answer, with a proof."""
    truth = brute_force(instance)
    outcome = solve(instance, solver)
    assert outcome.bound_source is not None and outcome.bound_source.exact
    if truth.objective is None:
        assert outcome.status == Status.INFEASIBLE
        return
    assert outcome.status == Status.OPTIMAL
    assert outcome.objective == outcome.bound == truth.objective
    assert outcome.placement is not None
    assert check(instance, outcome.placement).feasible


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_what_fits_nowhere_is_infeasible(solver: str) -> None:
    """HiGHS ends without any values where no option fits, which PuLP's reader cannot take."""
    assert solve(built([at(ANY, 1, hbm=1)] * 2, hbm=0), solver).status == Status.INFEASIBLE


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_a_wrong_answer_is_improved(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof takes nothing from the solver's plan: from none, it finds the best one itself."""
    monkeypatch.setattr(mip, "rounded", lambda model: None)
    outcome = solve(built([at(ANY, cost, hbm=4) for cost in (3, 4, 5)], hbm=9), solver)
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 7)
    assert "rounding" not in outcome.note


def test_a_proof_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the steps of a proof a plan is feasible, with HiGHS's bound in floating point."""
    monkeypatch.setattr(mip_exact, "MOST_COEFFICIENTS", 0)
    outcome = solve(_knapsack(6))
    assert outcome.status == Status.FEASIBLE
    assert outcome.bound_source is not None and not outcome.bound_source.exact


def _knapsack(tables: int = 40) -> Instance:
    """Three choices of coprime sizes a table, under a budget that the largest of them exceed."""

    def option(table: int, size: int) -> Block:
        return at(EVERY, 5_000_000 - 1009 * size - 13 * table * size, hbm=size + 7 * table)

    drawn = [{str(size): option(t, size) for size in (311, 997, 1753)} for t in range(tables)]
    return built(drawn, "total", [[0]], hbm=1000 * tables)


def test_an_unknown_solver_is_named() -> None:
    """A solver other than HiGHS and CBC is refused, and these two are named."""
    with pytest.raises(InstanceError, match=r"'gurobi', allowed: 'highs' or 'cbc'"):
        solve_any(_knapsack(), "mip", Settings(options={"solver": "gurobi"}))


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_out_of_time_is_never_optimal(solver: str) -> None:
    """PuLP calls a plan at the time limit "Optimal"; the Outcome does not."""
    costs = [10**6 + 7919 * table * table % 10**6 for table in range(60)]
    instance = built([at(ANY, cost) for cost in costs], machines=[range(6)])
    outcome = solve(instance, solver, time_limit=0.5)
    assert outcome.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert outcome.stopped_by == StoppedBy.TIME_LIMIT
    if outcome.objective is not None and outcome.bound is not None:
        assert outcome.bound < outcome.objective


def test_a_second_solve_with_other_threads_runs() -> None:
    """HiGHS keeps one thread pool a process; a solve with more threads must not fail."""
    first, second = solve(_knapsack(6), workers=1), solve(_knapsack(6), workers=2)
    assert first.status == second.status == Status.OPTIMAL
    assert first.objective == second.objective


def test_an_answer_that_rounding_breaks_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rounded answer that the check rejects ends as unknown, not as a plan."""
    wrong = Placement(np.asarray([0]), [[np.asarray([0])]])
    monkeypatch.setattr("formulations.methods.mip.rounded", lambda model: wrong)
    monkeypatch.setattr(mip_exact, "MOST_COEFFICIENTS", 0)
    outcome = solve(_knapsack())
    assert outcome.status == Status.UNKNOWN
    assert outcome.placement is None
    assert "rounding errors" in outcome.note


def test_a_large_model_is_not_presolved_in_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS ignores limits in its presolve, which is off if a model is too large for the time."""
    seen: list[str] = []
    solver = pulp.HiGHS.callSolver

    def looked(self: pulp.HiGHS, lp: pulp.LpProblem) -> None:
        seen.append(lp.solverModel.getOptionValue("presolve")[1])
        solver(self, lp)

    monkeypatch.setattr(pulp.HiGHS, "callSolver", looked)
    instance = built([at(ANY, 7, hbm=5)], hbm=9)
    assert solve(instance, "highs", time_limit=60).objective == 7
    monkeypatch.setattr(mip, "PRESOLVED", 0)
    assert solve(instance, "highs", time_limit=60).objective == 7
    assert solve(instance, "highs", time_limit=None).objective == 7
    assert seen == ["choose", "off", "choose"]
