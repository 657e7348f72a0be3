"""As much of protobuf's text format as TorchEasyRec's configs need, read strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from milp_planner.errors import BadInput

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"""
    r"""|(?P<number>-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)|(?P<mark>[{}:])"""
)


class Message(list[tuple[str, object]]):
    """Fields of one message in order; a repeated field occurs more than once."""

    def all(self, name: str) -> list[object]:
        """Every value of a field."""
        return [value for key, value in self if key == name]

    def one(self, name: str, where: str) -> object:
        """The value of a field that may occur once; None where it is absent.

        Raises
        ------
        BadInput
        """
        found = self.all(name)
        if len(found) > 1:
            raise BadInput(f"{where}: {name} occurs {len(found)} times; allowed: once")
        return found[0] if found else None


def parse(text: str) -> Message:
    """Read a text.

    Raises
    ------
    BadInput
        With the line of the first thing that is not understood.
    """
    tokens = list(_tokens(text))
    message, end = _message(tokens, 0)
    if end < len(tokens):
        raise BadInput(f"line {tokens[end][2]}: a closing brace without an opening one")
    return message


def show(name: str, message: Sequence[tuple[str, object]], indent: int = 0) -> list[str]:
    """Lines of one named message."""
    pad = " " * indent
    lines = [f"{pad}{name} {{"]
    for key, value in message:
        if isinstance(value, Message):
            lines += show(key, value, indent + 2)
        else:
            lines.append(f"{pad}  {key}: {_scalar(value)}")
    return [*lines, f"{pad}}}"]


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise BadInput(f"line {line}: found {text[position : position + 20]!r}")
        if match.lastgroup:
            yield match.lastgroup, match.group(), line
        line += match.group().count("\n")
        position = match.end()


def _message(tokens: list[tuple[str, str, int]], at: int) -> tuple[Message, int]:
    message = Message()
    while at < len(tokens) and tokens[at][1] != "}":
        kind, name, line = tokens[at]
        if kind != "word" or at + 1 >= len(tokens):
            raise BadInput(f"line {line}: found {name}; allowed: a field name and its value")
        colon = tokens[at + 1][1] == ":"
        at += 2 if colon else 1
        if at < len(tokens) and tokens[at][1] == "{":
            value, at = _message(tokens, at + 1)
            if at >= len(tokens):
                raise BadInput(f"line {line}: the brace of {name} is never closed")
            message.append((name, value))
        elif colon and at < len(tokens) and tokens[at][0] != "mark":
            message.append((name, _value(tokens[at])))
        else:
            raise BadInput(f"line {line}: the field {name} has no value")
        at += 1
    return message, at


def _value(token: tuple[str, str, int]) -> object:
    kind, text, line = token
    if kind == "text":
        try:
            return json.loads(text)
        except ValueError:
            raise BadInput(f"line {line}: the text {text} has an unknown escape") from None
    if kind == "number":
        return float(text) if re.search(r"[.eE]", text) else int(text)
    return {"true": True, "false": False}.get(text, text)
