"""The prover's certificates, judged by the independently written checker."""

import copy
import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from formulations import checker
from formulations.instance import Instance
from formulations.instance.file import instance_to_dict
from formulations.proof.prove import prove, prove_infeasible
from formulations.result.certificate import Certificate, certificate_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

MUTANTS = 34


def written(certificate: Certificate) -> dict[str, Any]:
    """The certificate as a file holds it."""
    document: dict[str, Any] = json.loads(json.dumps(certificate_to_dict(certificate)))
    return document


def proves(document: dict[str, Any], certificate: dict[str, Any]) -> bool:
    """Whether the checker accepts the certificate."""
    return checker.Proof(checker.Instance(document), certificate).open_case() is None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_every_certificate_passes(instance: Instance) -> None:
    """The checker accepts every bound and proof of infeasibility, and no bound exceeds the truth;
    every small instance with a plan has a bound."""
    truth = brute_force(instance).objective
    certificate = prove_infeasible(instance, 5) if truth is None else prove(instance, truth, 5)
    if truth is not None:
        assert certificate is not None and certificate.target is not None
        assert certificate.target <= truth
    if certificate is not None:
        assert proves(instance_to_dict(instance), written(certificate))


@settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)  # fmt: skip
@given(instances(), st.integers(0, 2**32))
def test_no_mutant_proves_more_than_the_truth(instance: Instance, seed: int) -> None:
    """A changed target, multiplier, row, split, use or number of nodes proves nothing false."""
    truth = brute_force(instance).objective
    certificate = None if truth is None else prove(instance, truth, 5)
    assume(certificate is not None)
    assert certificate is not None and truth is not None
    rng, document = Random(seed), instance_to_dict(instance)
    for _ in range(MUTANTS):
        forged = copy.deepcopy(written(certificate))
        for _ in range(rng.randint(1, 3)):
            mutate(rng, forged)
        try:
            accepted = proves(document, forged)
        except checker.Unreadable:
            continue
        assert not accepted or (forged["kind"] == "bound" and forged["target"] <= truth)


def mutate(rng: Random, certificate: dict[str, Any]) -> None:
    """Change what a certificate means in one place."""
    kind = rng.randint(0, 3)
    if kind == 0 and rng.random() < 0.2:
        certificate["kind"] = "infeasible"
        certificate.pop("target", None)
        vectors = certificate["vectors"]
        certificate["vectors"] = [[row for row in v if "cost" not in row["row"]] for v in vectors]
    elif kind == 0 and "target" in certificate:
        certificate["target"] += rng.choice([1, 1, 2, 5, 10**6])
    elif kind == 1 and certificate["vectors"]:
        _scale(rng, rng.choice(certificate["vectors"]))
    elif kind == 2:
        node = rng.choice(certificate["nodes"])
        key = rng.choice(sorted(node) or ["use"])
        node[key] = _other(rng, node.get(key, []))
    else:
        splits = [
            node for node in certificate["nodes"] if node.get("options") or "machines" in node
        ]
        for last in splits[-1:]:
            certificate["nodes"].pop()
            lists: list[list[int]] = last["options" if "options" in last else "machines"]
            last["options" if "options" in last else "machines"] = lists[:-1]


def _scale(rng: Random, rows: list[dict[str, Any]]) -> None:
    """Change one number of a vector, or lose or double a row."""
    if not rows:
        return
    at = rng.randrange(len(rows))
    row = dict(rows[at])
    key = rng.choice([key for key, value in row.items() if isinstance(value, int)])
    numbers = [0, 1, row[key] + 1, row[key] * 2, max(0, row[key] - 1), 2**210]
    row[key] = rng.choice(numbers)
    rows[at : at + 1] = rng.choice([[row], [row], [row], [], [rows[at], row]])


def _other(rng: Random, value: Any) -> Any:
    """A list with an entry changed, lost or doubled; a number changed by one."""
    if isinstance(value, int):
        return max(0, value + rng.choice([-1, 1]))
    if not isinstance(value, list) or not value:
        return [0]
    value = list(value)
    at = rng.randrange(len(value))
    if isinstance(value[at], list) and rng.random() < 0.7:
        value[at] = _other(rng, value[at])
    elif rng.random() < 0.5:
        del value[at]
    else:
        value.insert(rng.randrange(len(value)), value[at])
    return value
