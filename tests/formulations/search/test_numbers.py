"""Each number of the search stands in one file, with what it counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import formulations

HOME = Path(formulations.__file__).parent
#: Where numbers belong; those of the last name places in an array.
THERE = {"numbers.py", "parameters.py", "anneal_data.py"}


def sources() -> Iterator[Path]:
    """The files of the search and of the goals."""
    for room in ("search", "goals"):
        yield from sorted((HOME / room).rglob("*.py"))


def is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or several."""
    if isinstance(value, ast.Tuple):
        return any(is_number(each) for each in value.elts)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) or is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def numbers(text: str) -> list[int]:
    """Lines of a source at which a module's name gets a number."""
    named = [n for n in ast.parse(text).body if isinstance(n, ast.Assign | ast.AnnAssign)]
    return [n.lineno for n in named if n.value is not None and is_number(n.value)]


def test_no_other_file_has_numbers_of_its_own() -> None:
    """Neither the search nor its goals name a number beside their file."""
    assert numbers("A = 1\nB, C = 2.0, 3\nD = -(2**4)\nE: int = 5\nF = 'text'") == [1, 2, 3, 4]
    found = [
        f"{file.relative_to(HOME)}:{line}"
        for file in sources()
        if file.name not in THERE
        for line in numbers(file.read_text(encoding="utf-8"))
    ]
    assert not found


def test_every_number_says_what_it_counts() -> None:
    """A comment stands above it, or above those that are named with it."""
    lines = (HOME / "search" / "numbers.py").read_text(encoding="utf-8").splitlines()
    named = [n for n, line in enumerate(lines) if line.lstrip()[:1].isalpha() and " = " in line]
    assert len(named) > 50
    bare = [lines[n] for n in named
            if not lines[n - 1].lstrip().startswith("#:") and n - 1 not in named]  # fmt: skip
    assert bare == ["NEAR, PATTERNS, PEAKED, AIMS = Near(), Patterns(), Peaked(), Aims()"]
