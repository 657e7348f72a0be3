"""The schema of plan.json accepts plans and refuses anything else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from docs.generate.plan_schema import plan_schema
from milp_planner.plans.plan_file import plan_to_dict
from tests.milp_planner.integrations.exports import plans

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "plan.schema.json"
jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is in the test extra")


@pytest.fixture(scope="module")
def validator() -> Any:
    """A validator of the schema, itself checked."""
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_up_to_date() -> None:
    """docs/schemas/plan.schema.json is what the code says."""
    assert json.loads(PAGE.read_text(encoding="utf-8")) == plan_schema(), "run: make docs"


@pytest.mark.parametrize("seed", range(4))
def test_plans_are_valid(validator: Any, seed: int) -> None:
    """Every plan document, after a trip through JSON text, satisfies the schema."""
    document = json.loads(json.dumps(plan_to_dict(plans.random_plan(seed))))
    validator.validate(document)


def test_compressed_parts_are_valid(validator: Any) -> None:
    """A large part may be embedded compressed."""
    document = plan_to_dict(plans.random_plan(0))
    document["instance"] = {"encoding": "json+gzip+base64", "data": "H4sI"}
    validator.validate(json.loads(json.dumps(document)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "milp-planner-plan/0"),
        (("tables", 0, "mode"), "FAST"),
        (("tables", 0, "ranks"), "all"),
        (("outcome", "status"), "good"),
        (("fingerprints", "model"), "abc"),
        (("model",), {"encoding": "zip", "data": ""}),
    ],
)
def test_changed_plans_are_not(validator: Any, path: tuple[Any, ...], value: Any) -> None:
    """Values outside the vocabulary are refused."""
    document = copy.deepcopy(json.loads(json.dumps(plan_to_dict(plans.random_plan(0)))))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not validator.is_valid(document)
