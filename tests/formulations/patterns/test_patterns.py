"""Patterns: targets decided as by brute force, with certificates that the checker accepts."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations import checker
from formulations.evidence.verify import certifies
from formulations.instance import Instance, Objective, Where
from formulations.instance.file import instance_to_dict, read_instance
from formulations.patterns.knapsack import heaviest
from formulations.patterns.pack import packed
from formulations.patterns.portions import portions_of
from formulations.patterns.tree import Decision, decide
from formulations.result.certificate import certificate_to_dict
from formulations.result.check import check
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built
from tests.formulations.strategies import instances

SOME = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
ON_RANKS = (Where.EVERY_RANK, Where.ANY_RANK, Where.LIST, Where.ONE_MACHINE)
COSTS = [Objective.BUSIEST_RANK, Objective.STEP_TIME, Objective.PIPELINED_STEP]


def never() -> bool:
    """A stop callback that never ends the search."""
    return False


def decided(instance: Instance, target: int) -> Decision | None:
    """The decision of patterns about a target; None where patterns do not suit the instance."""
    portions = portions_of(instance, instance.allowed)
    return None if portions is None else decide(portions, target, set(), never, 200)


@SOME
@given(instances(objectives=COSTS, wheres=ON_RANKS), st.integers(-3, 3))
def test_what_is_closed_has_no_plan(instance: Instance, above: int) -> None:
    """A certificate never claims more than brute force finds, and the checker accepts it."""
    truth = brute_force(instance).objective
    assume(truth is not None and truth + above > 0)
    found = decided(instance, truth + above - 1)
    assume(found is not None and found.certificate is not None)
    assert found.certificate.target == truth + above <= truth
    assert certifies(instance, found.certificate)


def large_shards(ranks: int = 3) -> Instance:
    """Tables with shards of 7, 5 or 4, one or two of which fill a rank, or halves on two ranks."""
    tables = [{"whole": at(ANY, cost, hbm=1),
               "halves": at(ANY, cost - 2, hbm=1, count=2, distinct=True)}
              for cost in (7, 7, 7, 5, 4)]  # fmt: skip
    return built(tables, machines=[range(ranks)], phases=["step"], hbm=100)


def test_the_optimum_of_large_shards_is_certified_and_packed() -> None:
    """Five tables on three ranks: no two shards of 7 lie together below 14."""
    instance = large_shards()
    truth = brute_force(instance).objective
    portions = portions_of(instance, instance.allowed)
    assert truth is not None and portions is not None
    proof = decide(portions, truth - 1, set(), never, 200).certificate
    assert proof is not None and certifies(instance, proof)
    choice = decide(portions, truth, set(), never, 200).options
    assert choice is not None
    plan = packed(portions, choice, truth, 10.0, never)
    assert plan is not None
    verdict = check(instance, plan)
    assert verdict.feasible and verdict.objectives["busiest_rank"] == truth


def proof_and_document() -> tuple[Instance, dict[str, Any]]:
    """A pattern proof of the optimum."""
    instance = large_shards()
    truth = brute_force(instance).objective
    assert truth is not None
    found = decided(instance, truth - 1)
    assert found is not None and found.certificate is not None
    return instance, certificate_to_dict(found.certificate)


def judged(instance: Instance, document: dict[str, Any]) -> bool:
    """Whether the checker accepts a certificate as it stands."""
    try:
        proof = checker.Proof(checker.Instance(instance_to_dict(instance)), document)
    except checker.Unreadable:
        return False
    return proof.open_case() is None


def test_forged_rows_are_refused() -> None:
    """A higher target, a lower limit, heavier, unknown or repeated shards, another objective."""
    instance, good = proof_and_document()
    [[row]], weights = good["vectors"], good["vectors"][0][0]["weights"]
    assert judged(instance, good)
    assert not judged(instance, good | {"target": good["target"] + 1})
    for forged in (
        {"most": row["most"] - 1},
        {"weights": [[*place, 9 * weight] for *place, weight in weights]},
        {"weights": [*weights, [0, 0, 1, 1]]},
        {"of": "step_time"},
        {"weights": [*weights, weights[0]]},
    ):
        assert not judged(instance, good | {"vectors": [[row | forged]]})


@SOME
@given(st.data())
def test_mutated_rows_never_prove_what_is_false(data: st.DataObject) -> None:
    """Whatever stands in a row, no target above the optimum is accepted."""
    instance, document = proof_and_document()
    document["target"] += data.draw(st.integers(1, 3))
    for vector in document["vectors"]:
        for row in vector:
            row["most"] = data.draw(st.integers(0, 40))
            row["times"] = data.draw(st.integers(0, 3))
            row["weights"] = [
                [t, o, 0, data.draw(st.integers(0, 30))] for t in range(5) for o in range(2)
            ]
    assert not judged(instance, document)


def test_heaviest_is_the_best_of_all_patterns() -> None:
    """``heaviest`` finds the best of all choices of at most one portion a table."""
    instance = large_shards()
    portions = portions_of(instance, instance.allowed)
    assert portions is not None
    rng = np.random.default_rng(1)
    for target in (5, 9, 12):
        weight = rng.random(len(portions.table))
        best = 0.0
        for digits in product(range(3), repeat=5):
            chosen = [own[d - 1] for own, d in zip(portions.of_table, digits, strict=True) if d]
            if portions.load[chosen].sum() <= target:
                best = max(best, float(weight[chosen].sum()))
        value, pattern = heaviest(portions, weight, target, instance.allowed)
        assert value == pytest.approx(best)
        assert float(weight[pattern].sum()) == pytest.approx(value)


def test_nvidias_26_tables_on_64_ranks(shared_data: Path) -> None:
    """Patterns certify a bound, and pack a plan whose cost equals it."""
    instance = read_instance(shared_data / "embark" / "dcnv2_8x8.json.gz")
    portions = portions_of(instance, instance.allowed)
    assert portions is not None
    proof = decide(portions, 398_458_879, set(), never, 200).certificate
    assert proof is not None and certifies(instance, proof)
    choice = decide(portions, 399_245_312, set(), never, 200).options
    assert choice is not None
    plan = packed(portions, choice, 399_245_312, 20.0, never)
    assert plan is not None
    assert check(instance, plan).objectives["busiest_rank"] == proof.target


def test_certificates_carry_positions_only() -> None:
    """A pattern row has the keys that docs/proof.md lists, and no others."""
    _, document = proof_and_document()
    [row] = document["vectors"][0]
    assert row.keys() == {"row", "of", "most", "weights", "times"}
