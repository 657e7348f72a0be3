"""docs/inputs.md against the classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from docs.generate.inputs import CLASSES, field_table, renew
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.spec import Spec

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "inputs.md").read_text("utf-8")


def test_tables_are_current() -> None:
    """The field tables are what `python -m docs.generate.inputs docs/inputs.md` makes."""
    assert renew(DOCUMENT) == DOCUMENT


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_is_documented(name: str) -> None:
    """Every class has its table, and every field its meaning."""
    assert f"<!-- fields: {name} -->" in DOCUMENT
    for field, info in CLASSES[name].model_fields.items():
        assert info.description, f"{name}.{field} has no docstring"
        assert f"| `{info.alias or field}` |" in field_table(CLASSES[name])


def specs(annotation: Any) -> Iterator[type[Spec]]:
    """The classes of fields in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for part in get_args(annotation):
        yield from specs(part)


def test_no_class_is_forgotten() -> None:
    """What fields of models and clusters lead to has a table; Unknown has no own field."""
    todo, seen = [Model, Cluster], set[type[Spec]]()
    while todo:
        if (cls := todo.pop()) not in seen:
            seen.add(cls)
            todo += [part for info in cls.model_fields.values() for part in specs(info.annotation)]
    assert len(seen) > 20
    assert {cls.__name__ for cls in seen} - CLASSES.keys() == {"Unknown"}


def test_an_old_table_is_renewed() -> None:
    """A table that drifted is replaced."""
    old = "a\n<!-- fields: Rank -->\nold\n<!-- end -->\nb"
    assert renew(old) == f"a\n<!-- fields: Rank -->\n{field_table(CLASSES['Rank'])}<!-- end -->\nb"


def test_examples_are_read() -> None:
    """The complete YAML examples of the page are valid inputs."""
    examples = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.S)]
    complete = [each for each in examples if "name" in each]
    assert len(complete) == 2
    Model.from_dict(complete[0])
    Cluster.from_dict(complete[1])
