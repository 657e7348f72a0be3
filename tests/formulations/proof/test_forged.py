"""Outcomes whose certificates were forged by hand, in files."""

import json
from pathlib import Path

import pytest

from formulations import checker
from formulations.proof.prove import prove
from formulations.result.certificate import certificate_from_dict, certificate_to_dict
from tests.formulations.examples import four_tables

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


def test_a_certificate_is_read_back_as_written() -> None:
    """Writing and reading change nothing."""
    certificate = prove(four_tables(), 22)
    assert certificate is not None
    assert certificate_from_dict(certificate_to_dict(certificate)) == certificate
