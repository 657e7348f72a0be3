"""A strict YAML reader that remembers the line of every field.

YAML 1.1 turns ``no`` into false, ``010`` into 8, ``1:30`` into 90 and leaves ``1e6`` as text.
Here plain scalars are null, true, false, decimal numbers or text; what merely looks like one of
the traps above is an error, as are duplicate keys, tags and merge keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from milp_planner.errors import BadInput

Path = tuple[str | int, ...]
"""Where a value sits in the document: mapping keys and list positions from the root."""

MAX_NODES = 2_000_000
"""Values a document may expand to; aliases count every time they are used."""

_NULL = re.compile(r"~|null|")
_BOOL = re.compile(r"true|false")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]{3})*)")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]{1,3})?")
_TRAPS = (
    (
        re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9]+)?[eE][-+]?[0-9]+"),
        "which YAML reads as text; write the number out (1000000) or as 1.0e+6",
    ),
    (
        re.compile(r"[-+]?0[0-9_]+"),
        "which YAML reads as an octal number; drop the leading zero or quote it",
    ),
    (
        re.compile(r"yes|no|on|off|True|False|TRUE|FALSE|YES|NO|ON|OFF|Yes|No|On|Off"),
        "which YAML readers disagree about; write true or false, or quote it as text",
    ),
    (
        re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE),
        "which is not a finite number",
    ),
    (re.compile(r"<<"), "a merge key, which is not read here; repeat the fields or use defaults"),
)


@dataclass(frozen=True)
class Document:
    """A parsed file: plain values and the line each of them starts on.

    Attributes
    ----------
    file : str
        Name of the file, as error sentences print it.
    data : object
        Plain values: dict, list, str, int, float, bool or None.
    lines : dict
        Line (from 1) of every value by its path; empty where the format has none (JSON).
    parts : dict
        Documents whose data was put in at a path, for instance a CSV file of tables.
    """

    file: str
    data: Any
    lines: dict[Path, int] = field(default_factory=dict)
    parts: dict[Path, Document] = field(default_factory=dict)

    def where(self, path: Path) -> str:
        """``file:line`` of the value at ``path``, or of its nearest ancestor that is written."""
        for prefix, part in self.parts.items():
            if path[: len(prefix)] == prefix and not self.is_written(path):
                return part.where(path[len(prefix) :])
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return f"{self.file}:{self.lines[path[:length]]}"
        return self.file

    def is_written(self, path: Path) -> bool:
        """Whether this file itself (not a part of it) has a value at ``path``."""
        return path in self.lines


def read_yaml(text: str, file: str) -> Document:
    """Parse one YAML document.

    Raises
    ------
    BadInput
        With ``file:line`` and what is wrong: broken YAML, a duplicate key, a trap scalar, a tag,
        an alias to itself, or a document too large or too deep.
    """
    try:
        node = yaml.compose(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise BadInput(f"{file}:{line}: not valid YAML: {_one_line(error)}") from None
    except (yaml.reader.ReaderError, ValueError) as error:
        raise BadInput(f"{file}: not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise BadInput(f"{file}: nested too deeply to be read") from None
    if node is None:
        return Document(file, None, {(): 1})
    return _Walk(file).document(node)


class _StrictLoader(yaml.SafeLoader):
    """Composes nodes; every plain scalar stays text, so that ``_Walk`` can judge it."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


class _Walk:
    """Turns nodes into plain values and collects their lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self.active: set[int] = set()
        self.nodes = 0

    def document(self, node: yaml.Node) -> Document:
        try:
            return Document(self.file, self.value(node, ()), self.lines)
        except RecursionError:
            raise BadInput(f"{self.file}: nested too deeply to be read") from None

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.error(node, f"the file expands to more than {MAX_NODES:,} values")
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if id(node) in self.active:
            raise self.error(node, "an alias refers to the value it is part of")
        self.active.add(id(node))
        container = self.mapping if isinstance(node, yaml.MappingNode) else self.sequence
        result = container(node, path)
        self.active.discard(id(node))
        return result

    def mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        self.plain_tag(node, "tag:yaml.org,2002:map")
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            if key in result:
                first = self.lines[(*path, key)]
                raise self.error(
                    key_node, f"the field {key!r} is written twice (first on line {first})"
                )
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            result[key] = self.value(value_node, (*path, key))
        return result

    def sequence(self, node: yaml.Node, path: Path) -> list[Any]:
        self.plain_tag(node, "tag:yaml.org,2002:seq")
        return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]

    def key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "a field name must be plain text")
        if node.style is None:
            self.refuse_merge(node)
        return str(node.value)

    def refuse_merge(self, node: yaml.ScalarNode) -> None:
        pattern, reason = _TRAPS[-1]
        if pattern.fullmatch(node.value):
            raise self.error(node, f"found {node.value}, {reason}")

    def scalar(self, node: yaml.ScalarNode) -> Any:
        self.plain_tag(node, "tag:yaml.org,2002:str")
        text = node.value
        if node.style is not None:
            return text
        try:
            return plain_scalar(text)
        except ValueError as error:
            raise self.error(node, str(error)) from None

    def plain_tag(self, node: yaml.Node, expected: str) -> None:
        if node.tag != expected:
            raise self.error(node, f"found the tag {node.tag}; allowed: plain values without tags")

    def error(self, node: yaml.Node, what: str) -> BadInput:
        return BadInput(f"{self.file}:{node.start_mark.line + 1}: {what}")


def plain_scalar(text: str) -> bool | int | float | str | None:
    """The value an unquoted text stands for; also used for the cells of a CSV file.

    Raises
    ------
    ValueError
        When it looks like a number or a truth value but is none.
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text == "true"
    if _INT.fullmatch(text) and len(text) <= 40:
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text)
    for pattern, reason in _TRAPS:
        if pattern.fullmatch(text):
            raise ValueError(f"found {text[:40]}, {reason}")
    return text


def _one_line(error: yaml.MarkedYAMLError) -> str:
    parts = [part for part in (error.context, error.problem) if part]
    return ", ".join(" ".join(part.split()) for part in parts) or "unreadable"
