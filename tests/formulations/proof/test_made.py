"""Rows of patterns and peaks as the product writes them, changed: judge, checker and the truth."""

from collections import Counter
from copy import deepcopy
from random import Random

from formulations.instance.file import instance_to_dict
from formulations.proof.judge import closes
from formulations.result.certificate import certificate_to_dict
from tests.formulations.forging import mutate
from tests.formulations.proof.made import kinds, made
from tests.formulations.proof.test_judge import checked, judged


def test_changed_rows_of_patterns_and_peaks() -> None:
    """Of certificates with these rows, 30 changes each, none proves more than the optimum; the
    judge accepts what the product wrote, and later none that the checker does not."""
    rng, rows, said = Random(7), Counter[str](), Counter[tuple[bool, bool]]()
    for instance, truth, certificate in made(range(24)):
        rows.update(kinds(certificate))
        if "pattern" not in kinds(certificate):  # rows that are left to the checker
            assert closes(instance, certificate)
        document = instance_to_dict(instance)
        for _ in range(30):
            forged = deepcopy(certificate_to_dict(certificate))
            mutate(forged, rng, raised=0.2)
            alone, fast = checked(document, forged), judged(instance, forged)
            assert not (alone and forged["target"] > truth)
            assert alone or not fast
            said[alone, fast] += 1
    assert min(rows["pattern"], rows["peaks"]) > 5, rows
    assert min(said[True, True], said[True, False], said[False, False]) > 10, said
