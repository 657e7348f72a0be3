"""The published JSON schema and the reader agree."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from formulations import InstanceError
from formulations.instance.file import instance_from_dict
from tests.formulations.instance.test_instance_file import MISTAKES, document

jsonschema = pytest.importorskip("jsonschema")
DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def validator() -> Any:
    """A validator for the published schema."""
    schema = json.loads((DOCS / "schemas" / "instance.schema.json").read_text())
    kind = jsonschema.Draft202012Validator
    kind.check_schema(schema)
    return kind(schema)


def test_valid_documents_fit_the_schema(validator: Any) -> None:
    """What the writer writes, and the example in the docs, fit the schema."""
    validator.validate(document())
    text = (DOCS / "instance-format.md").read_text()
    example = json.loads(text.split("```json")[1].split("```")[0])
    validator.validate(example)
    instance_from_dict(example)


def test_what_the_schema_refuses_the_reader_refuses(validator: Any) -> None:
    """The reader is at least as strict as the schema on every known mistake."""
    refused = 0
    for _, edit, _ in MISTAKES:
        wrong = copy.deepcopy(document())
        edit(wrong)
        if not validator.is_valid(wrong):
            refused += 1
            with pytest.raises(InstanceError):
                instance_from_dict(wrong)
    assert refused >= 15


def test_the_reference_instances_fit_the_schema(validator: Any, shared_data: Path) -> None:
    """A recorded TorchRec instance fits the schema."""
    import gzip

    path = shared_data / "torchrec" / "torchrec_20x8_s0_loose.json.gz"
    validator.validate(json.loads(gzip.decompress(path.read_bytes())))
