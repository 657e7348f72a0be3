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
RUNS = [(1, 0), (2, 1)]


def test_every_file_has_its_truth() -> None:
    """The table of truths is complete and names no file that is not there."""
    assert {p.name for p in HERE.glob("*.json")} - {"truth.json"} == set(TRUTH)


@pytest.mark.parametrize("name", TRUTH)
def test_the_truth_is_the_oracle_s(name: str) -> None:
    """The stored truth is what enumeration finds."""
    assert brute_force(read_instance(HERE / name)).objective == TRUTH[name]


@pytest.mark.parametrize(("workers", "seed"), RUNS)
@pytest.mark.parametrize("formulation", EXACT)
@pytest.mark.parametrize("name", TRUTH)
def test_exact_formulations_find_it(name: str, formulation: str, workers: int, seed: int) -> None:
    """The optimum, proved, or the proof that there is no plan; nothing in the Outcome is false."""
    instance, truth = read_instance(HERE / name), TRUTH[name]
    outcome = solve(instance, formulation, Settings(time_limit=20, workers=workers, seed=seed))
    assert wrongs(instance, truth, outcome) == []
    assert outcome.status == (Status.INFEASIBLE if truth is None else Status.OPTIMAL)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("formulation", [f for f in FORMULATIONS if f not in EXACT])
@pytest.mark.parametrize("name", TRUTH)
def test_the_others_claim_nothing_false(name: str, formulation: str, seed: int) -> None:
    """Each other formulation says nothing false, or refuses an instance of this shape."""
    instance = read_instance(HERE / name)
    try:
        outcome = solve(instance, formulation, Settings(time_limit=20, workers=1, seed=seed))
    except UnsupportedInstance:
        return
    assert wrongs(instance, TRUTH[name], outcome) == []


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
