"""Reading files strictly: text with error sentences instead of tracebacks, YAML with line numbers.

YAML 1.1 turns ``no`` into false, ``010`` into 8, ``1:30`` into 90 and leaves ``1e6`` as text. Here
plain scalars are null, true, false, decimal numbers or text; anything that looks like one of the
traps above is an error, as are duplicate keys, tags, anchors and merge keys.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from formulations.runtime.regular_file import first_bytes, read_regular
from milp_planner.errors import CHECK, MOST_PROBLEMS, BadInput, Problem
from milp_planner.files import kind_of
from milp_planner.inputs.problems import Loc, nearest

MAX_DEPTH = 50
"""Levels of nesting that are read; the inputs need eight."""
_TOO_DEEP = f"nested too deeply; allowed: {MAX_DEPTH} levels"
MOST_VALUES = 2_000_000
"""Values of one file that are read: numbers, texts, lists and mappings."""

_NULL = re.compile(r"~|null|")
_BOOL = re.compile(r"true|false")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]{3})*)")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]{1,3})?")
_TRAPS = (
    (
        re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9]+)?[eE][-+]?[0-9]+"),
        ("which YAML reads as text", "write the number out (1000000) or as 1.0e+6", ""),
    ),
    (
        re.compile(r"[-+]?0[0-9_]+"),
        ("which YAML reads as an octal number", "drop the leading zero", " or quote it"),
    ),
    (
        re.compile(r"yes|no|on|off|True|False|TRUE|FALSE|YES|NO|ON|OFF|Yes|No|On|Off"),
        ("which YAML readers disagree about", "write true or false", ", or quote it as text"),
    ),
    (
        re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE),
        ("which is not a finite number", "allowed: finite numbers", ""),
    ),
)
"""Scalars that are refused: why YAML needs them to be, the cure, and one by quotes."""


@dataclass(frozen=True)
class Document:
    """A parsed file: plain values, and the line on which each of them starts."""

    file: str
    """Name of the file in error messages."""
    data: Any
    """Plain values: dict, list, str, int, float, bool or None."""
    lines: dict[Loc, int] = field(default_factory=dict)
    """Line (from 1) of every value by its path; empty if the format has none (JSON)."""
    parts: dict[Loc, Document] = field(default_factory=dict)
    """Documents whose data was inserted at a path, for instance a CSV file of tables."""
    faults: tuple[tuple[Loc, Problem], ...] = ()
    """What could not be read, with its path, where the data has None or nothing at all."""
    columns: frozenset[str] | None = None
    """The header of a CSV file; None for other formats."""

    @property
    def all_faults(self) -> tuple[tuple[Loc, Problem], ...]:
        """Its own faults and those of its parts."""
        parts = self.parts.items()
        inner = [((*at, *path), what) for at, part in parts for path, what in part.all_faults]
        return (*self.faults, *inner)

    def place(self, path: Loc) -> tuple[str, int | None]:
        """File and line of the value at ``path``, or of its nearest ancestor that is written."""
        for prefix, part in self.parts.items():
            if path[: len(prefix)] == prefix and path not in self.lines:
                return part.place(path[len(prefix) :])
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.file, self.lines[path[:length]]
        return self.file, None

    def where(self, path: Loc) -> str:
        """``file:line`` of a place, or only the file if it has no lines."""
        file, line = self.place(path)
        return file if line is None else f"{file}:{line}"


def read_yaml(text: str, file: str, keep_faults: bool = False, most: int = MOST_VALUES) -> Document:
    """Parse one YAML document; BadInput with ``file:line`` and the problem.

    Problems are broken YAML, a duplicate key, a trap scalar, a tag, an anchor or alias, a second
    document, too deep nesting, or more than ``most`` values. With ``keep_faults`` duplicate keys
    and trap scalars, which do not stop reading, are left to
    :func:`milp_planner.inputs.files.build`.
    """
    try:
        document = _Reader(file, yaml.parse(text, Loader=_LOADER), most).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BadInput.of([Problem(_what(error), "", file, line)]) from None
    except (yaml.reader.ReaderError, ValueError) as error:
        raise BadInput(f"{file}: not valid YAML: {str(error).splitlines()[0]}") from None
    if document.faults and not keep_faults:
        raise BadInput.of([problem for _, problem in document.faults])
    return document


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Only its parser is used, up to events; the parser in C is ten times faster, if installed."""


class _Reader:
    """Builds plain values from the parser's events, and records the line of each."""

    def __init__(self, file: str, events: Iterator[Any], most: int) -> None:
        self.file = file
        self.events = events
        self.most = most
        self.values = 0
        self.lines: dict[Loc, int] = {}
        self.faults: list[tuple[Loc, Problem]] = []

    def document(self) -> Document:
        """The single document of the file; None if there is only white space."""
        next(self.events)
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            return Document(self.file, None, {(): 1})
        data = self.value(next(self.events), ())
        next(self.events)
        further = next(self.events)
        if not isinstance(further, yaml.StreamEndEvent):
            raise self.error(further, "found a second document; allowed: one")
        return Document(self.file, data, self.lines, faults=tuple(self.faults))

    def value(self, event: Any, path: Loc) -> Any:
        """The value that begins with an event."""
        self.refuse_extras(event)
        self.lines.setdefault(path, event.start_mark.line + 1)
        self.values += 1
        if self.values > self.most:
            raise self.error(event, too_many(self.most))
        if len(path) > MAX_DEPTH:
            raise self.error(event, _TOO_DEEP)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(path)
        if not event.implicit[0]:
            return event.value
        try:
            return plain_scalar(event.value)
        except ValueError as error:
            self.note(event, path, str(error))
            return None

    def mapping(self, path: Loc) -> dict[str, Any]:
        """The fields up to the end of a mapping; each name may occur once."""
        result: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.key(event)
            if key in result:
                first = self.lines[(*path, key)]
                what = f"the field {key!r} is written twice (first on line {first})"
                self.note(event, (*path, key), what)
            self.lines[(*path, key)] = event.start_mark.line + 1
            result[key] = self.value(next(self.events), (*path, key))
        return result

    def sequence(self, path: Loc) -> list[Any]:
        """The values up to the end of a list."""
        result: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            result.append(self.value(event, (*path, len(result))))
        return result

    def key(self, event: Any) -> str:
        """A field's name: always text, even if it looks like a number."""
        self.refuse_extras(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise self.error(event, "a field name must be plain text")
        if event.implicit[0] and event.value == "<<":
            raise self.error(event, "found <<, a merge key, which is not read; use defaults")
        return str(event.value)

    def refuse_extras(self, event: Any) -> None:
        """Refuse anchors, aliases and tags, which make a file mean more than it shows."""
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            raise self.error(
                event,
                f"found {mark}{event.anchor}, an anchor or alias, which is not read; "
                "write the value out or use defaults",
            )
        if event.tag is not None:
            raise self.error(
                event, f"found the tag {event.tag}; allowed: plain values without tags"
            )

    def error(self, event: Any, what: str) -> BadInput:
        """A sentence that begins with the line of an event."""
        return BadInput.of([self.problem(event, what)])

    def note(self, event: Any, path: Loc, what: str) -> None:
        """Record a mistake that does not stop reading; all are reported at the end."""
        self.faults.append((path, self.problem(event, what)))
        if len(self.faults) == MOST_PROBLEMS:
            raise BadInput.of([problem for _, problem in self.faults], CHECK)

    def problem(self, event: Any, what: str) -> Problem:
        """A problem with an event, and its line."""
        return Problem(what, "", self.file, event.start_mark.line + 1)


def too_many(most: int) -> str:
    """The problem of a file with more values than are read."""
    return f"more values than are read; allowed: {most:,} numbers, texts, lists and mappings"


def plain_scalar(text: str, in_yaml: bool = True) -> bool | int | float | str | None:
    """The value of unquoted text; also used for the cells of a CSV file.

    ValueError if it looks like a number or a truth value but is neither. Outside YAML, the sentence
    does not speak of it, nor of quotes.
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text == "true"
    if _INT.fullmatch(text):
        if len(text) > 40:
            quote = "; quote text" if in_yaml else ""
            raise ValueError(f"found {text[:40]}..., which is too long for a number{quote}")
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text)
    for pattern, (why, cure, quote) in _TRAPS:
        if pattern.fullmatch(text):
            told = f", {why}; {cure}{quote}" if in_yaml else f"; {cure}"
            raise ValueError(f"found {text[:40]}{told}")
    return text


def dump(data: object) -> str:
    """YAML that :func:`read_yaml` reads back as the same values, with fields in their order."""
    return str(yaml.dump(data, Dumper=_Writer, sort_keys=False))


class _Writer(yaml.SafeDumper):
    """Quotes text that would read as anything else, such as ``1e6``, and uses no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Never: the reader refuses aliases."""
        return True


def _text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    try:
        plain = plain_scalar(text) == text
    except ValueError:
        plain = False
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else "'")


_Writer.add_representer(str, _text)


def _what(error: yaml.MarkedYAMLError) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    message = ", ".join(" ".join(part.split()) for part in parts) or "unreadable"
    # PyYAML 6.0.4 has its own limit, and looks ahead far enough to reach it first
    return _TOO_DEEP if "maximum nesting depth" in message else f"not valid YAML: {message}"


MAX_BYTES = 64 * 2**20
"""Largest input file that is read."""


def neighbour(path: Path, fits: Callable[[Path], bool] = lambda _: True) -> str | None:
    """The file in the same folder whose name is nearest, of those that fit."""
    with contextlib.suppress(OSError):
        names = sorted(each.name for each in path.parent.iterdir())
        while close := nearest(path.name, names):
            if fits(found := path.parent / close):
                return str(found)
            names.remove(close)
    return None


def is_kind(path: Path, kind: str) -> bool:
    """Whether a path is a file of a kind (:func:`kind_of`)."""
    return path.is_file() and kind_of(first_bytes(path, 2**16)) == kind


def read_text(path: Path, alike: Callable[[Path], str | None] = neighbour) -> str:
    """The UTF-8 text of a file; ``alike`` suggests a name for a missing one.

    BadInput if it is missing, a folder, a pipe or device, unreadable, too large or not UTF-8.
    """
    try:
        raw = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        close = alike(path)
        hint = f"; did you mean {close}?" if close else ""
        raise BadInput(f"{path}: no such file{hint}") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; allowed: a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None


def csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells, stripped, of every non-empty line of a CSV file."""
    text = io.StringIO(read_text(path).removeprefix("\ufeff"), newline="")
    reader = csv.reader(text, strict=True, skipinitialspace=True)
    try:
        for line in reader:
            cells = [cell.strip() for cell in line]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        problem = Problem(f"not valid CSV: {error}", "", str(path), reader.line_num)
        raise BadInput.of([problem]) from None
