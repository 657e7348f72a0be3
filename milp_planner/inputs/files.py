"""Models and clusters from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from milp_planner.errors import CHECK, BadInput, Problem
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import Loc, explain, likeliest_first, show_path
from milp_planner.inputs.spec import Spec
from milp_planner.inputs.strict_yaml import Document, read_yaml
from milp_planner.inputs.table_files import read_json, with_tables
from milp_planner.inputs.text_files import neighbour, read_text

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
    return build(Model, with_tables(read_document(file), file.parent), file.parent, CHECK)


def load_cluster(path: str | Path) -> Cluster:
    """Read a cluster from YAML (or JSON, by the name's ending).

    Raises
    ------
    BadInput
        As ``load_model``.
    """
    return build(Cluster, read_document(Path(path)), listed_by=CHECK)


def read_document(path: Path, alike: Callable[[Path], str | None] = neighbour) -> Document:
    """Plain values and their lines from a YAML or JSON file; ``alike`` as ``read_text`` has it.

    Raises
    ------
    BadInput
        When the file is missing, unreadable, broken, empty, or no mapping of fields.
    """
    text = read_text(path, alike)
    read = read_json if path.suffix.lower() == ".json" else read_yaml
    document = read(text, str(path))
    if document.data is None:
        raise BadInput(f"{path}: the file is empty; allowed: a mapping of fields")
    if not isinstance(document.data, dict):
        raise BadInput(
            f"{document.where(())}: found a {_shape(document.data)}; allowed: a mapping of fields"
        )
    return document


def build(
    cls: type[AnySpec], document: Document, folder: Path | None = None, listed_by: str = ""
) -> AnySpec:
    """Check a document against an input class; findings name file and line.

    Files that fields name lie in ``folder``; ``listed_by`` is the command that lists all findings.

    Raises
    ------
    BadInput
        For the finding that most likely caused the others; its ``problems`` are all of them.
    """
    try:
        return cls.model_validate(document.data, context={"folder": folder})
    except ValidationError as error:
        found: dict[Loc, Problem] = {}  # one a field: a wrong default is found in every table
        for finding, path in likeliest_first(cls, error):
            written = _as_written(path, document.data)
            place = document.place(written)
            found.setdefault(written, Problem(explain(cls, finding), show_path(written), *place))
        raise BadInput.of(list(found.values()), listed_by) from None


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
