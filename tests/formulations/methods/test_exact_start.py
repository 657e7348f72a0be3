"""The plan that the exact model starts from."""

import pytest

from formulations.baselines.greedy import starting_plan
from formulations.clock import Clock
from formulations.instance import Instance
from formulations.methods import exact
from formulations.result.check import check
from formulations.result.outcome import BoundSource, Status, infeasible
from formulations.settings import Settings
from formulations.solve import solve
from tests.formulations.examples import ANY, at, built


def _shards(costs: list[int]) -> Instance:
    return built([at(ANY, cost, hbm=5) for cost in costs], machines=[range(3)], hbm=40)


def test_it_is_a_plan() -> None:
    """The starting plan passes the check."""
    instance, wishes = _shards([3, 4, 5, 6, 7]), Settings(workers=1, time_limit=10)
    plan = starting_plan(instance, wishes, Clock(wishes))
    assert plan is not None and check(instance, plan).feasible


def test_the_proof_does_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the starting plan or without, the busiest of three ranks is proved to carry 9 of 25."""
    monkeypatch.setattr("formulations.methods.exact.START_FROM", 1)
    for hint in ("greedy", None):
        if hint is None:
            monkeypatch.setattr("formulations.methods.exact.starting_plan", lambda *_: None)
        wishes = Settings(workers=1, time_limit=30, certificate=False)
        outcome = exact.solve(_shards([3, 4, 5, 6, 7]), wishes, Clock(wishes))
        assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 9)


def test_out_of_time_the_start_is_the_answer() -> None:
    """A search that ends before its first plan returns one no worse than the plan it was given."""
    tables = [at(ANY, 10**8 + (7919 * i * i) % 10**8) for i in range(300)]
    instance = built(tables, machines=[range(40)])
    wishes = Settings(workers=1, time_limit=10)
    start = starting_plan(instance, wishes, Clock(wishes))
    late = Settings(workers=1, time_limit=0.001, hint=start, certificate=False)
    outcome = exact.solve(instance, late, Clock(late))
    assert start is not None and outcome.placement is not None
    assert outcome.status == Status.FEASIBLE
    assert (outcome.objective or 0) <= check(instance, start).objectives["busiest_rank"]


def test_infeasible_despite_a_plan_shows_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A feasible hint stands beside the claim that there is no plan, for ``solve`` to judge."""
    instance, wishes = _shards([3, 4, 5]), Settings(workers=1, time_limit=10)
    plan = starting_plan(instance, wishes, Clock(wishes))
    claim = infeasible("cpsat", BoundSource("cpsat", exact=True))
    monkeypatch.setattr("formulations.methods.exact._outcome", lambda *_: claim)
    hinted = Settings(workers=1, time_limit=10, hint=plan)
    told = exact.solve(instance, hinted, Clock(hinted))
    assert plan is not None and told.placement is plan
    assert solve(instance, "cpsat", hinted).status != Status.INFEASIBLE
