"""What the prover writes and what is changed or drawn at random: checker, judge and the truth."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations.evidence.verify import certifies
from formulations.instance import Instance, Objective
from formulations.instance.file import instance_to_dict
from formulations.proof.judge import closes
from formulations.proof.prove import prove, prove_infeasible
from formulations.result.certificate import Certificate, certificate_from_dict, certificate_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.by_hand import worked_example
from tests.formulations.certificates import random_certificate, random_functions, random_peaks
from tests.formulations.examples import four_tables
from tests.formulations.forging import checked, judged, mutate
from tests.formulations.fuzz.generate import generate
from tests.formulations.patterns.test_boxes import large_shards
from tests.formulations.proof.made import made
from tests.formulations.strategies import instances
from tests.formulations.test_checker_packing import heavy

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
PEAKED = [Objective.STEP_TIME, Objective.PIPELINED_STEP]
#: Rows that the judge reads in every instance.
READ = {
    "cost", "capacity", "largest_cost", "largest_use", "fusion", "moved_tables", "moved_bytes",
}  # fmt: skip


def read_here(certificate: Certificate) -> bool:
    """Whether the judge reads such a certificate; it leaves one of several equal ranks to the
    checker."""
    rows = [row for vector in certificate.vectors for row in vector]
    apart = any({"machine", "at"} & row.keys() or row["row"] not in READ for row in rows)
    return not apart and not any(n.keys() & {"machines", "pack"} for n in certificate.nodes)


@settings(LOOSE, max_examples=100)
@given(instances())
def test_what_the_prover_says_is_true(instance: Instance) -> None:
    """Given the optimum, a worse plan or none, the prover certifies a bound no higher, and no plan
    only where there is none; the checker accepts it, and so does the judge where it reads it."""
    truth = brute_force(instance).objective
    found = [prove_infeasible(instance, 5)]
    assert found[0] is None or truth is None
    if truth is not None:
        found += [prove(instance, upper, 5) for upper in (truth, truth + 7, None)]
    for certificate in found:
        assert certificate is not None or truth is None or certificate is found[0]
        if certificate is None:
            continue
        assert certifies(instance, certificate)
        closed = closes(instance, certificate)
        assert closed is not False
        if certificate.target is None or truth is None:
            continue
        assert certificate.target <= truth
        assert closed or not read_here(certificate) or not instance.num_tables
        above = replace(certificate, target=truth + 1)
        assert not certifies(instance, above) and not closes(instance, above)


def forged(
    certificates: Iterator[tuple[Instance, int, Certificate]], rng: Random, times: int
) -> Counter[tuple[bool, bool]]:
    """How often checker and judge accept changed certificates: never more than the optimum, and the
    judge none that the checker leaves open."""
    said = Counter[tuple[bool, bool]]()
    for instance, truth, certificate in certificates:
        for _ in range(times):
            document = deepcopy(certificate_to_dict(certificate))
            for _ in range(rng.randint(1, 3)):
                mutate(rng, document)
            alone, fast = checked(instance, document), judged(instance, document)
            assert not alone or (document["kind"] == "bound" and document["target"] <= truth)
            assert alone or not fast
            said[alone, fast] += 1
    return said


def test_mutants_prove_nothing_false() -> None:
    """Of more than 1,000 changed certificates of the prover."""

    def proved() -> Iterator[tuple[Instance, int, Certificate]]:
        for instance in map(generate, range(1, 61)):
            truth = brute_force(instance).objective
            certificate = None if truth is None else prove(instance, truth, 5)
            if truth is not None and certificate is not None and instance.num_tables:
                yield instance, truth, certificate

    said = forged(proved(), Random(5), 40)
    assert min(said[True, True], said[False, False]) > 100 and said.total() > 1000, said


def test_mutants_of_peaks_prove_nothing_false() -> None:
    """Of certificates with these rows, of both objectives, which the judge accepts as written."""
    written = list(made(range(24)))
    assert all(closes(instance, certificate) for instance, _, certificate in written)
    assert min(Counter(instance.by_phase for instance, _, _ in written).values()) > 5
    said = forged(iter(written), Random(7), 30)
    assert min(said[True, True], said[False, False]) > 100, said


def test_mutants_of_a_pattern_prove_nothing_false() -> None:
    """Of one written by hand, whose row the judge leaves to the checker."""
    written = certificate_from_dict(heavy(11))
    said = forged(iter([(large_shards(), 11, written)]), Random(9), 400)
    assert min(said[True, False], said[False, False]) > 10 and not said[True, True], said


@settings(LOOSE, max_examples=100)
@given(instances(), st.integers(0, 2**32))
def test_random_certificates(instance: Instance, seed: int) -> None:
    """They prove no bound above the optimum, no feasible instance infeasible, and every bound below
    what they prove; the judge closes none that the checker leaves open."""
    truth, document, rng = brute_force(instance).objective, instance_to_dict(instance), Random(seed)
    for above in range(3):
        target = 1 if truth is None else truth + above
        for claimed in (target, None):
            drawn = random_certificate(rng, document, claimed, rng.randint(0, 5))
            said = checked(instance, drawn)
            assert said or not judged(instance, drawn)
            if truth is None:
                continue
            assert not said or (claimed is not None and claimed <= truth)
            if claimed is not None and checked(instance, drawn | {"target": truth}):
                assert checked(instance, drawn | {"target": truth - 1})


@settings(LOOSE, max_examples=100)
@given(instances(objectives=PEAKED), st.integers(0, 2**32), st.integers(-5, 3))
def test_random_rows_of_peaks(instance: Instance, seed: int, above: int) -> None:
    """They and cuts prove no more than the optimum; the judge agrees where it reads them."""
    truth = brute_force(instance).objective
    assume(truth is not None and instance.num_tables and instance.bare_phases.any())
    document = random_peaks(Random(seed), instance_to_dict(instance), max(1, truth + above))
    found, said = closes(instance, certificate_from_dict(document)), checked(instance, document)
    assert found is None or found == said
    assert not said or document["target"] <= truth


@settings(LOOSE, max_examples=100)
@given(
    instances(objectives=[o for o in Objective if o != Objective.TOTAL]),
    st.integers(0, 2**32),
    st.integers(-5, 4),
)
def test_random_rows_of_functions(instance: Instance, seed: int, above: int) -> None:
    """They and cuts prove no more than the optimum; the judge reads them all, and closes none that
    the checker leaves open."""
    truth = brute_force(instance).objective
    assume(truth is not None and instance.num_tables and instance.bare_phases.any())
    document = random_functions(Random(seed), instance_to_dict(instance), max(1, truth + above))
    found, said = closes(instance, certificate_from_dict(document)), checked(instance, document)
    assert found is not None and (said or not found)
    assert not said or document["target"] <= truth


@pytest.mark.parametrize(("drawn", "many"), [(random_peaks, 150), (random_functions, 300)])
def test_some_random_rows_close(drawn: Callable[..., dict[str, Any]], many: int) -> None:
    """On the four tables of docs/proof.md under step_time, and the checker says the same of all."""
    instance = replace(four_tables(), objective=Objective.STEP_TIME)
    document, found = instance_to_dict(instance), []
    for seed in range(many):
        certificate = drawn(Random(seed), document, 16)
        found.append(closes(instance, certificate_from_dict(certificate)))
        assert found[-1] == checked(instance, certificate)
    assert None not in found and 5 < sum(found) < many


def test_the_example_of_the_page() -> None:
    """The tree proves 22, the optimum, not 23, and nothing if a case or row is left out or does not
    exist."""
    instance, (_, tree) = four_tables(), worked_example()
    assert brute_force(instance).objective == 22
    assert judged(instance, tree)
    assert not judged(instance, tree | {"target": 23})
    assert not judged(instance, tree | {"target": 10**30})
    for node, change in ((0, {"options": [[1], [1]]}), (0, {"options": [[1], [2]]}),
                         (1, {"use": [1, 2]}), (6, {})):  # fmt: skip
        nodes = deepcopy(tree["nodes"])
        nodes[node] = nodes[node] | change if change else change
        assert not judged(instance, tree | {"nodes": nodes})
    for row in ({"row": "cost", "of": "total", "times": 1}, {"row": "moved_tables", "times": 0}):
        assert not judged(instance, tree | {"vectors": [*tree["vectors"], [row]]})
