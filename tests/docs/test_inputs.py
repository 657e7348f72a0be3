"""docs/inputs.md against the classes.

docs/house.md shows every folder and file of milp_planner, on one screen.

The page about the search is one screen long, and true: names, lists and their order.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, get_args

import pytest
import yaml

import formulations
from docs.generate.inputs import CLASSES, KINDS, field_table, renew
from formulations.search import lists
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.spec import Spec

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "inputs.md").read_text("utf-8")


def test_tables_are_current() -> None:
    """The field tables are what `python -m docs.generate.inputs docs/inputs.md` makes."""
    assert renew(DOCUMENT) == DOCUMENT


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_is_documented(name: str) -> None:
    """Every class has its table, and every field its meaning; what all access statistics have
    stands once."""
    assert f"<!-- fields: {name} -->" in DOCUMENT
    table = field_table(CLASSES[name])
    if CLASSES[name] in KINDS:
        table += field_table(CLASSES["Unknown"])
    for field, info in CLASSES[name].model_fields.items():
        assert info.description, f"{name}.{field} has no docstring"
        assert f"| `{info.alias or field}` |" in table


def specs(annotation: Any) -> Iterator[type[Spec]]:
    """The classes of fields in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for part in get_args(annotation):
        yield from specs(part)


def test_no_class_is_forgotten() -> None:
    """What fields of models and clusters lead to has a table."""
    todo, seen = [Model, Cluster], set[type[Spec]]()
    while todo:
        if (cls := todo.pop()) not in seen:
            seen.add(cls)
            todo += [part for info in cls.model_fields.values() for part in specs(info.annotation)]
    assert len(seen) > 20
    assert {cls.__name__ for cls in seen} <= CLASSES.keys()


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


ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "house.md").read_text("utf-8")
LINES, COLUMNS = 60, 120
"""Of a screen."""
CODE = ROOT / "milp_planner"


def shown(page: str) -> tuple[set[Path], set[Path]]:
    """Folders with a line of their own, and the modules that lines name, below the checkout."""
    folders: list[tuple[int, Path]] = []
    named: set[Path] = set()
    lines = re.findall(r"```\n(.*?)```", page, re.S)[0].splitlines()
    for line in lines:
        indent, first = len(line) - len(line.lstrip()), line.split("  ")
        text = next(part for part in first if part.strip()).strip()
        while folders and indent <= folders[-1][0] and folders[-1][1] != Path("milp_planner"):
            folders.pop()
        here = folders[-1][1] if folders else Path()
        if text.endswith("/"):
            folders.append((indent, here / text.rstrip("/")))
            named.add(here / text.rstrip("/"))
            continue
        for module in text.split(","):
            if module.strip() not in ("…", ""):
                named.add(here / f"{module.split()[0]}.py")
    return {each for each in named if not each.suffix}, {each for each in named if each.suffix}


def test_every_folder_and_file_is_shown() -> None:
    """Every folder has a line; so has every module of pricing; others are in their folder's."""
    folders, modules = shown(PAGE)
    found = [each.relative_to(ROOT) for each in CODE.rglob("*") if "__pycache__" not in each.parts]
    assert folders == {each for each in found if (ROOT / each).is_dir()} | {Path("milp_planner")}
    priced = {each for each in found if each.suffix == ".py" and "pricing" in each.parts}
    missing = {each for each in priced - modules if each.name != "__init__.py"}
    assert missing == set()
    assert {each for each in modules if not (ROOT / each).is_file()} == set()


def test_it_is_one_screen() -> None:
    """The page is no longer, and its tree no wider, than a screen."""
    tree = re.findall(r"```\n(.*?)```", PAGE, re.S)[0].splitlines()
    assert len(PAGE.splitlines()) <= LINES
    assert max(map(len, tree)) <= COLUMNS


def test_a_wrong_name_is_noticed() -> None:
    """A folder or module under another name is not the one that is there."""
    without = PAGE.replace("    replay/ ", "    played/ ")
    folders, _ = shown(without)
    assert Path("milp_planner/integrations/replay") not in folders
    assert Path("milp_planner/integrations/played") in folders
    _, modules = shown(PAGE.replace("price       ", "priced      "))
    assert Path("milp_planner/pricing/priced.py") in modules


SEARCH_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "search.md").read_text(
    encoding="utf-8"
)
SEARCH_COLUMNS = (
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
    names = {n for n in re.findall(r"`([^`]+)`", SEARCH_PAGE) if not n.startswith("--")}
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
        for line in SEARCH_PAGE.splitlines() if line.startswith("| `")
    ]  # fmt: skip
    for column, parts in enumerate(SEARCH_COLUMNS, start=2):
        told = {row[0].strip("`"): int(row[column]) for row in rows if row[column]}
        entries = [entry.__name__ for part in parts for entry in part]
        assert sorted(told, key=told.__getitem__) == entries
        assert sorted(told.values()) == list(range(1, len(entries) + 1))


def test_it_fits_on_one_screen() -> None:
    """No more than forty lines."""
    assert len(SEARCH_PAGE.splitlines()) <= 40
