"""The judge on arrays says *closed* where the prover did, and only where the checker does."""

import copy
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations import checker
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective
from formulations.instance.file import instance_to_dict
from formulations.proof.judge import closes
from formulations.proof.prove import prove
from formulations.result.certificate import Certificate, certificate_from_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.certificates import random_certificate, random_functions, random_peaks
from tests.formulations.examples import four_tables
from tests.formulations.fuzz.generate import generate
from tests.formulations.proof.test_checked import mutate, proves, written
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def read_here(certificate: Certificate) -> bool:
    """Whether the judge on arrays reads certificates of this kind."""
    rows = [row for vector in certificate.vectors for row in vector]
    apart = any("machine" in row or row["row"] not in _READ for row in rows)
    return not apart and not any(n.keys() & {"machines", "pack"} for n in certificate.nodes)


_READ = {
    "cost", "capacity", "largest_cost", "largest_use", "fusion", "moved_tables", "moved_bytes",
}  # fmt: skip


def judged(instance: Instance, document: dict[str, Any]) -> bool:
    """Whether the judge on arrays closes a certificate."""
    try:
        return closes(instance, certificate_from_dict(document)) is True
    except InstanceError:
        return False


def checked(instance: dict[str, Any], document: dict[str, Any]) -> bool:
    """Whether the checker can read a certificate and accepts it."""
    try:
        return proves(instance, document)
    except checker.Unreadable:
        return False


@LOOSE
@given(
    instances(objectives=[Objective.STEP_TIME, Objective.PIPELINED_STEP]),
    st.integers(0, 2**32),
    st.integers(-5, 2),
)
def test_rows_of_peaks_are_read_as_the_checker_reads_them(
    instance: Instance, seed: int, above: int
) -> None:
    """The judge agrees with the checker on random rows of peaks and cuts, where it reads them."""
    truth = brute_force(instance).objective
    assume(truth is not None and instance.num_tables and instance.bare_phases.any())
    document = random_peaks(Random(seed), instance_to_dict(instance), max(1, truth + above))
    found = closes(instance, certificate_from_dict(document))
    assert found is None or found == checked(instance_to_dict(instance), document)


def test_most_random_rows_of_peaks_are_read() -> None:
    """On the four tables of docs/proof.md under step_time the judge reads them all and closes
    some, as the checker does."""
    instance = replace(four_tables(), objective=Objective.STEP_TIME)
    document, found = instance_to_dict(instance), []
    for seed in range(150):
        certificate = random_peaks(Random(seed), document, 16)
        found.append(closes(instance, certificate_from_dict(certificate)))
        assert found[-1] == checked(document, certificate)
    assert None not in found and 5 < sum(found) < 150


@LOOSE
@given(
    instances(objectives=[o for o in Objective if o != Objective.TOTAL]),
    st.integers(0, 2**32),
    st.integers(-5, 2),
)
def test_rows_of_functions_are_read_as_the_checker_reads_them(
    instance: Instance, seed: int, above: int
) -> None:
    """The judge reads all random rows of functions and cuts, and closes none that the checker
    leaves open."""
    truth = brute_force(instance).objective
    assume(truth is not None and instance.num_tables and instance.bare_phases.any())
    document = random_functions(Random(seed), instance_to_dict(instance), max(1, truth + above))
    found = closes(instance, certificate_from_dict(document))
    assert found is not None
    assert not found or checked(instance_to_dict(instance), document)


def test_some_random_rows_of_functions_close() -> None:
    """On the four tables of docs/proof.md under step_time, as the checker says."""
    instance = replace(four_tables(), objective=Objective.STEP_TIME)
    document, found = instance_to_dict(instance), []
    for seed in range(300):
        certificate = random_functions(Random(seed), document, 16)
        found.append(closes(instance, certificate_from_dict(certificate)))
        assert found[-1] == checked(document, certificate)
    assert 5 < sum(found) < 300


@LOOSE
@given(instances())
def test_what_the_prover_closes_is_closed(instance: Instance) -> None:
    """The judge closes every proof over pooled ranks, whether the prover knows the truth or not."""
    truth = brute_force(instance).objective
    for upper in (truth, None):
        certificate = None if truth is None else prove(instance, upper, seconds=5)
        if certificate is not None and read_here(certificate) and instance.num_tables:
            rows = [row for vector in certificate.vectors for row in vector]
            found = closes(instance, certificate)
            # a row of one of several equal ranks is left to the checker
            assert found or (found is None and any("at" in row for row in rows))


def test_mutants_are_closed_only_where_the_checker_closes_them() -> None:
    """Of 2,000 mutated certificates the judge closes none that the checker leaves open, and agrees
    with it both ways more than 100 times."""
    rng, found = Random(5), {(False, False): 0, (True, True): 0, (False, True): 0}
    for number in range(1, 41):
        instance = generate(number)
        certificate = prove(instance, brute_force(instance).objective, 5)
        if certificate is None or not instance.num_tables:
            continue
        document = instance_to_dict(instance)
        for _ in range(50):
            forged = copy.deepcopy(written(certificate))
            mutate(rng, forged)
            said = judged(instance, forged), checked(document, forged)
            found[said] += 1  # KeyError: closed by arrays alone
    assert min(found[False, False], found[True, True]) > 100, found


@LOOSE
@given(instances(), st.integers(0, 2**32))
def test_random_certificates(instance: Instance, seed: int) -> None:
    """The judge closes no certificate of random rows and splits that the checker leaves open."""
    rng, document = Random(seed), instance_to_dict(instance)
    for target in (-1, 0, 1, 3, None):
        drawn = random_certificate(rng, document, target)
        if judged(instance, drawn):
            assert checked(document, drawn)


def test_the_example_of_the_page() -> None:
    """The tree proves 22, not 23, and nothing if a case or row is left out or does not exist."""
    tree: dict[str, Any] = {
        "version": 3, "kind": "bound", "target": 22,
        "vectors": [[{"row": "cost", "of": "busiest_rank", "times": 1}],
                    [{"row": "capacity", "of": "hbm", "times": 1}]],
        "nodes": [{"table": 0, "options": [[1], [0]]}, {"use": [0, 1]},
                  {"table": 1, "options": [[1], [0]]}, {"use": [0, 1]},
                  {"table": 2, "options": [[1], [0]]}, {"use": [0, 1]}, {"use": [1]}],
    }  # fmt: skip
    instance = four_tables()
    assert judged(instance, tree)
    assert not judged(instance, tree | {"target": 23})
    assert not judged(instance, tree | {"target": 10**30})
    for node, change in ((0, {"options": [[1], [1]]}), (0, {"options": [[1], [2]]}),
                         (1, {"use": [1, 2]}), (6, {})):  # fmt: skip
        nodes = copy.deepcopy(tree["nodes"])
        nodes[node] = nodes[node] | change if change else change
        assert not judged(instance, tree | {"nodes": nodes})
    for row in ({"row": "cost", "of": "total", "times": 1}, {"row": "moved_tables", "times": 0}):
        assert not judged(instance, tree | {"vectors": [*tree["vectors"], [row]]})
