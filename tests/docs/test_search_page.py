"""The page about the search is one screen long, and true: names, lists and their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import formulations
from formulations.search import lists

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "search.md").read_text(encoding="utf-8")
COLUMNS = (
    (lists.SMALL.primal,), (lists.SMALL.alone, lists.SMALL.dual),
    (lists.LARGE.primal,), (lists.LARGE.alone, lists.LARGE.dual),
)  # fmt: skip


def modules() -> Iterator[ModuleType]:
    """All of formulations."""
    for found in walk_packages(formulations.__path__, "formulations."):
        if not found.name.endswith("__main__"):
            yield import_module(found.name)


def test_every_name_is_one_of_the_code() -> None:
    """A class or function of that name, its attribute after a dot, or one of the two lists."""
    names = {n for n in re.findall(r"`([^`]+)`", PAGE) if not n.startswith("--")}
    owners: dict[str, object] = {}
    for module in modules():
        owners.update({n: v for n, v in vars(module).items() if callable(v)})
    for name in names - {"SMALL", "LARGE"}:
        first, _, rest = name.partition(".")
        assert first in owners, f"docs/search.md names {name}, which nothing is called"
        assert not rest or hasattr(owners[first], rest), f"docs/search.md: {name}"
    assert {"State", "Known", "Part", "Plans", "SMALL", "LARGE"} <= names


def test_every_list_is_told_in_its_order() -> None:
    """The numbers in a column are the positions in the code, with no part left out."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines() if line.startswith("| `")
    ]  # fmt: skip
    for column, parts in enumerate(COLUMNS, start=2):
        told = {row[0].strip("`"): int(row[column]) for row in rows if row[column]}
        entries = [entry.__name__ for part in parts for entry in part]
        assert sorted(told, key=told.__getitem__) == entries
        assert sorted(told.values()) == list(range(1, len(entries) + 1))


def test_it_fits_on_one_screen() -> None:
    """No more than forty lines."""
    assert len(PAGE.splitlines()) <= 40
