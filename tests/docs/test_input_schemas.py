"""The published JSON schemas: up to date, and in agreement with the reader."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from docs.generate.input_schemas import cluster_schema, model_schema, write_schemas
from milp_planner.cli.start import STARTERS, write_starters
from scenarios.catalog import clusters, models
from tests.milp_planner.inputs import builders

DOCS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
SCHEMAS = {"model": model_schema(), "cluster": cluster_schema()}


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schema_is_current(name: str, tmp_path: Path) -> None:
    """docs/schemas holds what `python -m docs.generate.input_schemas docs/schemas` writes."""
    write_schemas(tmp_path)
    file = f"{name}.schema.json"
    assert (DOCS / file).read_text("utf-8") == (tmp_path / file).read_text("utf-8")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_are_schemas(schema: dict[str, object]) -> None:
    """Both are valid JSON schemas of the 2020-12 draft."""
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("kind", "path"),
    [("model", each.path) for each in models()] + [("cluster", each.path) for each in clusters()],
    ids=lambda value: getattr(value, "stem", value),
)
def test_shipped_files_pass(kind: str, path: Path) -> None:
    """Every shipped file satisfies the schema an editor would check it with."""
    jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), SCHEMAS[kind])


def test_starters_pass(tmp_path: Path) -> None:
    """The starters satisfy their schemas."""
    for path in write_starters(tmp_path):
        jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), SCHEMAS[path.stem])
    assert {Path(name).stem for name in STARTERS} == set(SCHEMAS)


@pytest.mark.parametrize(
    "table",
    [
        {"name": "t", "access": "unknown", "dist_types": "roundrobin"},
        {"name": "t", "constraints": {"modes": "CACHING", "cache_ratios": "tenths"}},
        {"name": "t", "access": {"kind": "histogram", "bins": [[1.0, 1.0]]}},
    ],
)
def test_shorthands_pass(table: dict[str, object]) -> None:
    """What the reader takes as a shorthand, the schema takes too."""
    data = {**builders.model(table), "defaults": {"rows": "2M", "dim": 8}}
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMAS["model"])


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("model", builders.model(builders.table(kind="tf"))),
        ("model", builders.model(builders.table(row=5))),
        ("model", {**builders.model(), "tables": {"xml": "a"}}),
        ("cluster", builders.cluster(machines="two")),
        ("cluster", builders.cluster(interconect={})),
    ],
)
def test_mistakes_fail(kind: str, data: dict[str, object]) -> None:
    """The schemas are not so wide that they take wrong names."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SCHEMAS[kind])
