"""Mistakes in inputs: each gets one sentence with the field, what was found and what is allowed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model, Table
from milp_planner.inputs.constraints import Constraints
from milp_planner.inputs.files import load_cluster, load_model
from milp_planner.inputs.model import Workload
from milp_planner.inputs.strict_yaml import read_yaml
from tests.milp_planner.inputs.builders import CLUSTER_YAML, MODEL_YAML, model, table

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
READERS: dict[str, Callable[[Any], object]] = {
    "table": lambda fields: Table.from_dict(table(**fields)),
    "constraints": Constraints.from_dict,
    "cluster": Cluster.from_dict,
    "workload": lambda fields: Workload.from_dict({"batch_per_rank": 4, **fields}),
    "model": lambda fields: Model.from_dict({**model(table()), **fields}),
    "range": lambda fields: Model.from_dict(
        model({"names": "t1..t2", "rows": 5, "dim": 8, **fields})
    ),
    "access": lambda access: Model.from_dict(model(table(access=access))),
    "yaml": lambda text: read_yaml(text, "f"),
}


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [(kind, *row) for kind in READERS for row in MISTAKES[kind]],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_one_sentence(kind: str, given: Any, sentence: str) -> None:
    """It names the field first, what was found and what is allowed."""
    with pytest.raises(BadInput) as caught:
        READERS[kind](given)
    assert re.match(sentence, str(caught.value)), caught.value


@pytest.mark.parametrize(("name", "text", "sentence"), MISTAKES["tables file"])
def test_a_mistake_in_a_file_of_tables(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    """It is reported in its own file, with the line if the format has lines."""
    (tmp_path / name).write_text(text)
    head = "name: m\nworkload: {batch_per_rank: 4}\ndefaults: {dim: 8}\n"
    path = tmp_path / "model.yaml"
    path.write_text(f"{head}tables: {{{name.rpartition('.')[2]}: {name}}}\n")
    with pytest.raises(BadInput, match=sentence):
        load_model(path)


@pytest.mark.parametrize(("kind", "right", "wrong", "line", "sentence"), MISTAKES["changed file"])
def test_a_mistake_in_a_valid_file(
    tmp_path: Path, kind: str, right: str, wrong: str, line: int, sentence: str
) -> None:
    """One sentence that starts with its file and line."""
    load, text = {"model": (load_model, MODEL_YAML), "cluster": (load_cluster, CLUSTER_YAML)}[kind]
    assert right in text
    path = tmp_path / f"{kind}.yaml"
    path.write_text(text.replace(right, wrong, 1))
    with pytest.raises(BadInput, match=rf"^{path}:{line}: {sentence}") as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
