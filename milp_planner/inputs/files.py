"""Models and clusters from files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from formulations.runtime.regular_file import STANDARD_INPUT
from milp_planner.errors import CHECK, MOST_PROBLEMS, BadInput, Problem
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import Loc, explain, likeliest_first, show_path
from milp_planner.inputs.repeated import written_names
from milp_planner.inputs.spec import Spec
from milp_planner.inputs.strict_yaml import (
    MOST_VALUES,
    Document,
    csv_lines,
    is_kind,
    neighbour,
    plain_scalar,
    read_text,
    read_yaml,
    too_many,
)

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
    document = read_document(file, partial(neighbour, fits=partial(is_kind, kind="model")))
    return build(Model, _with_tables(document, file.parent), file.parent, CHECK)


def load_cluster(path: str | Path) -> Cluster:
    """Read a cluster from YAML (or JSON, by the name's ending).

    Raises
    ------
    BadInput
        As ``load_model``.
    """
    document = read_document(Path(path), partial(neighbour, fits=partial(is_kind, kind="cluster")))
    return build(Cluster, document, listed_by=CHECK)


def read_document(path: Path, alike: Callable[[Path], str | None] = neighbour) -> Document:
    """Plain values and their lines from a YAML or JSON file; ``alike`` as in ``read_text``.

    What does not stop reading is among the document's faults, for :func:`build`.

    Raises
    ------
    BadInput
        If the file is missing, unreadable, broken, empty, or not a mapping of fields.
    """
    text = read_text(path, alike)
    is_json = path.suffix.lower() == ".json" or (is_input(path) and looks_like_json(text))
    document = read_json(text, str(path)) if is_json else read_yaml(text, str(path), True)
    if document.data is None:
        raise BadInput(f"{path}: the file is empty; allowed: a mapping of fields")
    if not isinstance(document.data, dict):
        found = "list" if isinstance(document.data, list) else "single value"
        raise BadInput(f"{document.where(())}: found a {found}; allowed: a mapping of fields")
    return document


def is_input(path: Path) -> bool:
    """Whether a path stands for standard input, whose form its name does not say."""
    return str(path) == STANDARD_INPUT


def looks_like_json(text: str) -> bool:
    """Whether a text begins like a JSON object; in YAML such a line would be rare."""
    start = text.lstrip()
    return start.startswith("{") and start[1:].lstrip().startswith(('"', "}"))


def build(
    cls: type[AnySpec], document: Document, folder: Path | None = None, listed_by: str = ""
) -> AnySpec:
    """Check a document against an input class; findings name file and line.

    ``folder`` holds the files that fields name; ``listed_by`` is the command that lists all
    findings. Where the document has a fault, only that is told.

    Raises
    ------
    BadInput
        With the finding that most likely caused the others; its ``problems`` are all findings.
    """
    faults, found = document.all_faults, {}
    try:
        made = cls.model_validate(document.data, context={"folder": folder})
    except ValidationError as error:
        found = dict(_findings(cls, error, document))
    else:
        if not faults:
            return made
    unread = {path for path, _ in faults}
    hidden = [path for path in found if any(path[:n] in unread for n in range(len(path) + 1))]
    for path in hidden:
        del found[path]
    raise BadInput.of([*(problem for _, problem in faults), *found.values()], listed_by)


def _findings(
    cls: type[Spec], error: ValidationError, document: Document
) -> Iterator[tuple[Loc, Problem]]:
    """What is wrong, by place: a default that is wrong in every table is one finding."""
    table = document.parts.get(("tables",))
    known: set[Loc] = set()
    for finding, path in likeliest_first(cls, error):
        written = _as_written(path, document.data)
        shown = show_path(written)
        if table is not None and _is_of_column(finding["type"], written, table.columns):
            shown, written = show_path(written[2:]), ("tables", *written[2:])
        if written not in known:
            yield written, Problem(explain(cls, finding), shown, *document.place(written))
        known.add(written)


def _is_of_column(kind: str, path: Loc, columns: frozenset[str] | None) -> bool:
    """Whether a finding about a table of a CSV file is about a column, unknown or missing."""
    if columns is None or len(path) < 3 or path[0] != "tables":
        return False
    name = ".".join(map(str, path[2:]))
    return kind == "extra_forbidden" or (kind == "missing" and name not in columns)


def _as_written(path: Loc, data: Any) -> Loc:
    """The path of the field in the file, undoing ``patterns``, ``defaults``, ``machines: N``."""
    candidates = [path]
    if path[:1] == ("tables",) and len(path) > 2:
        candidates += [("patterns", key, *path[2:]) for key in _matching(path, data)]
        candidates.append(("defaults", *path[2:]))
    if path[:1] == ("machines",):
        candidates += [(*path[:2], *path[-1:]), path[-1:]]
    return next((each for each in candidates if _is_there(each, data)), path)


def _matching(path: Loc, data: Any) -> list[str]:
    """The patterns that the table at a path matches."""
    table = data["tables"][path[1]] if len(path) > 1 and _is_there(path[:2], data) else None
    if not isinstance(table, dict) or not isinstance(data.get("patterns"), dict):
        return []
    name = written_names(table)[0]
    return [pattern for pattern in data["patterns"] if fnmatchcase(name, str(pattern))]


def _is_there(path: Loc, data: Any) -> bool:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


TEXT_COLUMNS = frozenset({"name", "names", "external_storage", "admit_strategy"})
"""CSV columns whose cells are text even if they look like numbers."""

LIST_COLUMNS = frozenset(
    {"features", "dist_types"}
    | {
        f"constraints.{name}"
        for name in ("modes", "sharding_types", "cache_ratios", "column_widths", "ranks")
    }
    | {"constraints.pin.ranks", "access.hot_ids"}
)
"""CSV columns whose cells hold a list, written ``a|b|c``."""


def _with_tables(document: Document, folder: Path) -> Document:
    """The document with a reference to tables replaced by the tables.

    If the reference is wrong, or its file cannot be read, that is a fault of the tables.
    """
    data = document.data
    if not isinstance(data.get("tables"), dict):
        return document
    try:
        part = _tables_of(document, folder)
    except BadInput as error:
        faults = tuple((("tables",), problem) for problem in error.problems)
        rest = {name: value for name, value in data.items() if name != "tables"}
        return replace(document, data=rest, faults=(*document.faults, *faults))
    return replace(document, data={**data, "tables": part.data}, parts={("tables",): part})


def _tables_of(document: Document, folder: Path) -> Document:
    """The tables that a model refers to.

    Raises
    ------
    BadInput
        If the reference is not exactly one of csv and json, or its file is wrong.
    """
    data = document.data
    reference = data["tables"]
    if len(reference) != 1 or not set(reference) <= {"csv", "json"}:
        raise BadInput(
            f"{document.where(('tables',))}: tables: found the fields "
            f"{', '.join(reference) or 'none'}; allowed: a list, {{csv: FILE}} or {{json: FILE}}"
        )
    ((form, name),) = reference.items()
    if not isinstance(name, str):
        raise BadInput(
            f"{document.where(('tables', form))}: tables.{form}: found {name!r}; "
            "allowed: a file name"
        )
    path = folder / name
    return read_csv(path) if form == "csv" else read_json_tables(path)


def read_csv(path: Path) -> Document:
    """Tables from a CSV file: one header line of field names, one line per table.

    Nested fields have dotted names (``access.kind``), lists are written ``a|b``, and an empty cell
    leaves the field at its default. Lines of another length and cells that cannot be read are
    faults of the document.

    Raises
    ------
    BadInput
        For a missing header, repeated or empty names in it, and too many cells.
    """
    rows, file = csv_lines(path), str(path)
    header = next(rows, (1, []))[1]
    _check_header(header, file)
    tables: list[Any] = []
    faults: list[tuple[Loc, Problem]] = []
    lines: dict[Loc, int] = {(): 1}
    for number, cells in rows:
        if len(tables) * len(header) > MOST_VALUES:
            raise BadInput(f"{file}:{number}: {too_many(MOST_VALUES)}")
        at = len(tables)
        lines[(at,)] = number
        row, wrong = _row(header, cells)
        tables.append(row)
        for field, what in wrong:
            place: Loc = (at, *field.split(".")) if field else (at,)
            faults.append((place, Problem(what, field, file, number)))
        if len(faults) >= MOST_PROBLEMS:
            raise BadInput.of([problem for _, problem in faults], CHECK)
    return Document(file, tables, lines, faults=tuple(faults), columns=frozenset(header))


def read_json_tables(path: Path) -> Document:
    """Tables from a JSON file: a list, or an object whose field ``tables`` is one.

    Raises
    ------
    BadInput
        For broken JSON, a field written twice, or another shape.
    """
    document = read_json(read_text(path), str(path))
    data = document.data
    tables = data.get("tables") if isinstance(data, dict) else data
    if not isinstance(tables, list):
        raise BadInput(
            f"{path}: no list of tables; allowed: a list, or an object with the field tables"
        )
    return Document(str(path), tables)


def read_json(text: str, file: str, most: int = MOST_VALUES) -> Document:
    """Parse JSON strictly: no field twice, no NaN or Infinity, at most ``most`` values.

    Raises
    ------
    BadInput
        With file and line of what is broken.
    """
    if _values(text) > most and _values(_TEXTS.sub("", text)) > most:
        raise BadInput(f"{file}: {too_many(most)}")
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = Problem(f"not valid JSON: {error.msg}", "", file, error.lineno)
        raise BadInput.of([problem]) from None
    except RecursionError:
        raise BadInput(f"{file}: nested too deeply to be read") from None
    except ValueError as error:
        raise BadInput(f"{file}: not valid JSON: {error}") from None
    return Document(file, data)


_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Texts of a JSON file, whose commas separate nothing; one without an end goes to the end."""


def _values(text: str) -> int:
    """Number of values of a JSON text without texts, or slightly more: each but the first follows a
    comma or is the first of a list or mapping."""
    return 1 + sum(map(text.count, ",[{"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the field {key!r} is written twice")
        result[key] = value
    return result


def _refuse_constant(name: str) -> None:
    raise ValueError(f"found {name}; allowed: finite numbers")


def _check_header(header: list[str], file: str) -> None:
    if not header:
        raise BadInput(
            f"{file}:1: no header; the first line names the fields, such as name,rows,dim"
        )
    wrong = [f"column {at} has no name" for at, name in enumerate(header, 1) if not name]
    wrong += [
        f"the column {name!r} is written twice"
        for name in dict.fromkeys(header)
        if name and header.count(name) > 1
    ]
    if wrong:
        raise BadInput.of([Problem(each, "", file, 1) for each in wrong])


def _row(header: list[str], cells: list[str]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """A table, and the problems of its line: column and sentence."""
    if len(cells) != len(header):
        wrong = f"found {len(cells)} cells; allowed: {len(header)}, as in the header"
        return {}, [("", wrong)]
    table: dict[str, Any] = {}
    problems = []
    for name, text in zip(header, cells, strict=True):
        if not text:
            continue
        try:
            _put(table, name.split("."), _cell(name, text))
        except ValueError as error:
            problems.append((name, str(error)))
    return table, problems


def _cell(name: str, text: str) -> Any:
    if name in TEXT_COLUMNS:
        return text
    if name in LIST_COLUMNS:
        parts = [part.strip() for part in text.split("|")]
        return parts if name == "features" else [plain_scalar(part, False) for part in parts]
    return plain_scalar(text, in_yaml=False)


def _put(table: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"the column {name} and a column {name}.… are both filled")
    if isinstance(table.get(path[-1]), dict):
        raise ValueError(f"the column {path[-1]} and a column {path[-1]}.… are both filled")
    table[path[-1]] = value
