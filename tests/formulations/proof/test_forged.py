"""The checker on the page's example, and on certificates that were tampered with."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from formulations import checker
from formulations.errors import InstanceError
from formulations.evidence.verify import certifies
from formulations.proof.prove import prove
from formulations.result.certificate import Certificate, certificate_from_dict, certificate_to_dict
from tests.formulations.brute_force import brute_force
from tests.formulations.certificates import rows
from tests.formulations.examples import four_tables

EXAMPLE: dict[str, Any] = {
    "version": 3,
    "kind": "bound",
    "target": 22,
    "vectors": [rows({"cost": {"busiest_rank": 1}}), rows({"capacity": {"hbm": 1}})],
    "nodes": [
        {"table": 0, "options": [[1], [0]]},
        {"use": [0, 1]},
        {"table": 1, "options": [[1], [0]]},
        {"use": [0, 1]},
        {"table": 2, "options": [[1], [0]]},
        {"use": [0, 1]},
        {"use": [1]},
    ],
}


def read(**changes: Any) -> Certificate:
    """The example with some keys replaced."""
    return certificate_from_dict({**EXAMPLE, **changes})


def test_the_example_of_the_page() -> None:
    """The page's certificate proves 22, the optimum, and not 23."""
    assert brute_force(four_tables()).objective == 22
    assert certifies(four_tables(), read())
    assert not certifies(four_tables(), read(target=23))


def test_what_the_page_asks_of_a_certificate() -> None:
    """Left-out cases, open leaves, vectors that belong elsewhere: nothing is proved."""
    nodes = copy.deepcopy(EXAMPLE["nodes"])
    nodes[0]["options"] = [[1], [1]]
    assert not certifies(four_tables(), read(nodes=nodes))
    assert not certifies(four_tables(), read(nodes=[{}]))
    vectors: list[dict[str, Any]] = [
        {"cost": {"step": 1}},
        {"capacity": {"hbm": -1}},
        {"capacity": {"hbm": 1.0}},
        {"capacity": {"hbm": [1, 1, 1]}},
        {"largest_cost": {"busiest_rank": [[9, 1]]}},
    ]
    for vector in vectors:
        with pytest.raises(InstanceError, match=r"vector|certificate is not as"):
            certifies(four_tables(), read(vectors=[rows(vector), []]))


def test_a_certificate_is_read_back_as_written() -> None:
    """Writing and reading change nothing."""
    certificate = prove(four_tables(), 22)
    assert certificate is not None
    assert certificate_from_dict(certificate_to_dict(certificate)) == certificate


FORGED = sorted((Path(__file__).parent / "forged").glob("*.json"))


@pytest.mark.parametrize("path", FORGED, ids=lambda path: path.stem)
def test_no_forged_file_passes(path: Path) -> None:
    """The checker refutes each file or cannot read it; the file's ``why`` says what is forged."""
    case = json.loads(path.read_text())
    with pytest.raises((checker.Refuted, checker.Unreadable)) as caught:
        list(checker.check(case["instance"], case["outcome"]))
    assert str(caught.value).isprintable()


def test_there_are_forged_files() -> None:
    """The folder holds files, so that the test above tests something."""
    assert len(FORGED) >= 17
