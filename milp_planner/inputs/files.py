"""Models and clusters from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import Loc, likeliest_first, sentence
from milp_planner.inputs.spec import Spec
from milp_planner.inputs.strict_yaml import Document, read_yaml
from milp_planner.inputs.table_files import read_json, with_tables
from milp_planner.inputs.text_files import read_text

AnySpec = TypeVar("AnySpec", bound=Spec)


def load_model(path: str | Path) -> Model:
    """Read a model from YAML (or JSON, by the name's ending).

    Raises
    ------
    BadInput
        One sentence with file and line, field, what was found, what is allowed and the nearest
        valid name.
    """
    file = Path(path)
    return build(Model, with_tables(read_document(file), file.parent), file.parent)


def load_cluster(path: str | Path) -> Cluster:
    """Read a cluster from YAML (or JSON, by the name's ending).

    Raises
    ------
    BadInput
        As ``load_model``.
    """
    return build(Cluster, read_document(Path(path)))


def read_document(path: Path) -> Document:
    """Plain values and their lines from a YAML or JSON file.

    Raises
    ------
    BadInput
        When the file is missing, unreadable, broken, empty, or no mapping of fields.
    """
    text = read_text(path)
    read = read_json if path.suffix.lower() == ".json" else read_yaml
    document = read(text, str(path))
    if document.data is None:
        raise BadInput(f"{path}: the file is empty; allowed: a mapping of fields")
    if not isinstance(document.data, dict):
        raise BadInput(
            f"{document.where(())}: found a {_shape(document.data)}; allowed: a mapping of fields"
        )
    return document


def build(cls: type[AnySpec], document: Document, folder: Path | None = None) -> AnySpec:
    """Check a document against an input class; findings name file and line.

    Files that fields name lie in ``folder``.

    Raises
    ------
    BadInput
        For the finding that most likely caused the others.
    """
    try:
        return cls.model_validate(document.data, context={"folder": folder})
    except ValidationError as error:
        findings = [
            (finding, _as_written(path, document.data))
            for finding, path in likeliest_first(cls, error)
        ]
        finding, written = findings[0]
        more = len({path for _, path in findings}) - 1
        raise BadInput(sentence(cls, finding, written, document.where(written), more)) from None


def _as_written(path: Loc, data: Any) -> Loc:
    """The path of the field in the file, undoing ``defaults`` and ``machines: N``."""
    candidates = [path]
    if path[:1] == ("tables",):
        candidates.append(("defaults", *path[2:]))
    if path[:1] == ("machines",):
        candidates += [(*path[:2], *path[-1:]), path[-1:]]
    return next((each for each in candidates if _is_there(each, data)), path)


def _is_there(path: Loc, data: Any) -> bool:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _shape(value: object) -> str:
    return "list" if isinstance(value, list) else "single value"
