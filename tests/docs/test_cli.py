"""docs/cli.md is generated from the commands' declarations, which --help also prints.

The published JSON schemas: up to date, and in agreement with the reader.

The schema of plan.json accepts plans and refuses anything else.
"""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from docs.generate import cli as reference
from docs.generate.input_schemas import cluster_schema, model_schema, write_schemas
from docs.generate.plan_schema import plan_schema
from milp_planner.cli.main import COMMANDS, run
from milp_planner.cli.start import STARTERS, write_starters
from milp_planner.plans.plan_file import plan_to_dict
from scenarios.catalog import clusters, models
from tests.corpus import mistakes
from tests.milp_planner.inputs import builders
from tests.milp_planner.integrations.exports import plans

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    """`make docs` was run after the last change of a command."""
    assert PAGE.read_text(encoding="utf-8") == reference.reference(), "run: make docs"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_everything_documented_is_in_help(
    command: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every option of the page stands in --help, and every option there on the page."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run([command.name, "--help"]) == 0  # type: ignore[attr-defined]
    shown = capsys.readouterr().out
    words = {w.strip("│,* ") for w in shown.split() if w.startswith("--")} - {"--help"}
    declared = reference.parameters(command.load())  # type: ignore[attr-defined]
    names = {
        part.strip("`") for p in declared for part in p.names.replace(",", " ").split()
        if part.startswith("`--")
    }  # fmt: skip
    in_text = {word for word in words if word.rstrip(".:;)") in names or word in names}
    assert names <= words
    assert words - in_text <= {w for p in declared for w in p.help.split()} | set(shown.split())
    assert all(p.help for p in declared)


def test_check_tells_an_outdated_page(tmp_path: Path) -> None:
    """The same check as a command: 0 when equal, 1 when not."""
    page = tmp_path / "cli.md"
    assert reference.main([str(page)]) == 0
    assert reference.main(["--check", str(page)]) == 0
    page.write_text(page.read_text() + "more")
    assert reference.main(["--check", str(page)]) == 1


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


PLAN_SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "plan.schema.json"


@pytest.fixture(scope="module")
def validator() -> Any:
    """A validator of the schema, itself checked."""
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_published_schema_is_up_to_date() -> None:
    """docs/schemas/plan.schema.json is what the code says."""
    assert json.loads(PLAN_SCHEMA.read_text(encoding="utf-8")) == plan_schema(), "run: make docs"


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


@pytest.mark.parametrize(("path", "value"), mistakes(__file__, "changed plans are not"))
def test_changed_plans_are_not(validator: Any, path: tuple[Any, ...], value: Any) -> None:
    """Values outside the vocabulary are refused."""
    document = copy.deepcopy(json.loads(json.dumps(plan_to_dict(plans.random_plan(0)))))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert not validator.is_valid(document)
