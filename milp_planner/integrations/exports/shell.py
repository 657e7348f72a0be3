"""Variables that sourcing a shell text would set, for the few forms that recipes use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from milp_planner.errors import BadInput

_TOKEN = re.compile(
    r"""(?P<joined>\\\n) | (?P<blank>[ \t\r]+) | (?P<end>[\n;])
      | '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>.) | (?P<variable>\$\{\w+(?::?-[^}]*)?\}|\$\w+)
      | (?P<plain>[^\s\\'"$`;&|<>()]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_INSIDE = re.compile(r'\\(?P<escaped>["\\$`])|(?P<variable>\$\{\w+(?::?-[^}]*)?\}|\$\w+)')
_VARIABLE = re.compile(r"\$\{?(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}?")


def assignments(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, name and value of every assignment of a text, in order.

    Comments, ``export``, several assignments per line, lines continued by a backslash, quotes, and
    ``${NAME:-default}`` are understood; the last does not use the surrounding environment: it is
    NAME as set before, or the default, and plain text inside single quotes.

    Raises
    ------
    BadInput
        With the line number, for anything else.
    """
    found: dict[str, str] = {}
    for line, word in _words(text, found):
        if word == "export":
            continue
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise BadInput(f"line {line}: found {word!r}; allowed: NAME=value")
        found[name] = value
        yield line, name, value


_LINE = re.compile(r"(?:[^\\\n]|\\.)*(?:\n|$)", re.DOTALL)
_BEFORE = re.compile(r"""\s*(?:export\s+)?(?:\w+=(?:"[^"]*"|'[^']*'|[^\s;"'`$()])*\s+)+""")


def without_commands(text: str, names: Collection[str]) -> tuple[str, list[int]]:
    """A script without its commands, line by line, and the numbers of the lines that had one.

    What is assigned in front of a command is kept. BadInput for a line that assigns one of these
    names in another form than :func:`assignments` understands.
    """
    kept, commands, number = [], [], 1
    for line in _LINE.findall(text):
        try:
            list(assignments(line))
        except BadInput:
            before = _BEFORE.match(line)
            start = 0 if before is None else before.end()
            if re.search(rf"\b(?:{'|'.join(names)})=", line[start:]):
                list(assignments("\n" * (number - 1) + line))
            commands.append(number)
            kept.append(line[:start].rstrip() + "\n" * line.count("\n"))
        else:
            kept.append(line)
        number += line.count("\n")
    return "".join(kept), commands


def _words(text: str, found: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Words with the line on which each begins."""
    at, line, word, start = 0, 1, None, 1
    while at < len(text):
        if word is None and text[at] == "#":
            at = len(text) if (end := text.find("\n", at)) < 0 else end
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            raise BadInput(f"line {line}: not a shell assignment (found {_shown(text, at)})")
        if token["blank"] or token["end"]:
            if word is not None:
                yield start, word
            word = None
        elif not token["joined"]:
            start = line if word is None else start
            word = (word or "") + _value(token, found, line)
        line += token[0].count("\n")
        at = token.end()
    if word is not None:
        yield start, word


def _shown(text: str, at: int) -> str:
    return {"'": "a quote without its end", '"': "a quote without its end"}.get(
        text[at], repr(text[at : at + 2].strip())
    )


def _value(token: re.Match[str], found: dict[str, str], line: int) -> str:
    if token["variable"]:
        return _expanded(token["variable"], found)
    if token["double"] is not None:
        return _in_quotes(token["double"], found, line)
    return token["single"] or token["escaped"] or token["plain"] or ""


def _in_quotes(text: str, found: dict[str, str], line: int) -> str:
    """Text between double quotes, where variables are replaced and commands are refused."""

    def replaced(match: re.Match[str]) -> str:
        if match["variable"]:
            return _expanded(match["variable"], found)
        return str(match["escaped"])

    text = re.sub(r"(\\.)", lambda m: "" if m[1] == "\\\n" else m[1], text, flags=re.DOTALL)
    for command in ("$(", "`"):
        if command in re.sub(r"\\.", "", text, flags=re.DOTALL):
            raise BadInput(f"line {line}: not a shell assignment (found '{command}' in quotes)")
    return _INSIDE.sub(replaced, text)


def _expanded(variable: str, found: dict[str, str]) -> str:
    match = _VARIABLE.fullmatch(variable)
    assert match is not None
    return found.get(match["name"]) or match["default"] or ""
