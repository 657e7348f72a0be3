"""Instances that were once answered wrongly are answered right, by every formulation.

The oracle itself: by hand, and against the solver-free check.
"""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from formulations import Settings, Status, UnsupportedInstance, read_instance, solve
from formulations.instance import Instance
from formulations.registry import FORMULATIONS
from formulations.result.check import check
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, at, built
from tests.formulations.fuzz.judge import wrongs
from tests.formulations.strategies import instances

HERE = Path(__file__).parent / "wrong_answers"
TRUTH: dict[str, int | None] = json.loads((HERE / "truth.json").read_text())
EXACT = ("auto", "cpsat", "scale")


def test_every_file_has_its_truth() -> None:
    """The table of truths is complete and names no file that is not there."""
    assert {p.name for p in HERE.glob("*.json")} - {"truth.json"} == set(TRUTH)


@pytest.mark.parametrize("name", TRUTH)
def test_the_truth_is_the_oracle_s(name: str) -> None:
    """The stored truth is what enumeration finds."""
    assert brute_force(read_instance(HERE / name)).objective == TRUTH[name]


@pytest.mark.parametrize(
    ("name", "formulation", "seed"),
    [(n, f, seed) for n in TRUTH for f in FORMULATIONS for seed in (0, 1) if not seed or f in n],
)
def test_nothing_false_is_said(name: str, formulation: str, seed: int) -> None:
    """Nothing in an Outcome is false, and the exact formulations prove the optimum or that there is
    no plan; others may refuse a shape. What once answered wrongly, as a file's name says, is asked
    twice, the second time with two workers."""
    instance, truth, exact = read_instance(HERE / name), TRUTH[name], formulation in EXACT
    wishes = Settings(time_limit=20, workers=1 + seed * exact, seed=seed)
    try:
        outcome = solve(instance, formulation, wishes)
    except UnsupportedInstance:
        assert not exact
        return
    assert wrongs(instance, truth, outcome) == []
    if exact:
        assert outcome.status == (Status.INFEASIBLE if truth is None else Status.OPTIMAL)


def test_two_shards_part_when_one_rank_is_too_small() -> None:
    """Two shards of 6 on ranks of 10 must part, so the busiest rank has one of them."""
    truth = brute_force(built([at(ANY, 7, hbm=6, count=2)], hbm=10))
    assert truth.objective == 7
    assert truth.placement is not None
    assert sorted(truth.placement.to_lists(0)[0]) == [0, 1]


def test_infeasible_is_none() -> None:
    """A shard larger than every rank has no plan."""
    instance = built([at(EVERY, 1, hbm=6)], "total", [[0], [1]], hbm=5)
    assert brute_force(instance).objective is None


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_agrees_with_check(instance: Instance) -> None:
    """The oracle's plan passes the check, at the objective that the oracle claims."""
    truth = brute_force(instance)
    if truth.placement is not None:
        verdict = check(instance, truth.placement)
        assert verdict.feasible, verdict.violations
        assert verdict.objectives[instance.objective.value] == truth.objective
