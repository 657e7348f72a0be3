"""docs/house.md shows every folder and file of milp_planner, on one screen."""

from __future__ import annotations

import re
from pathlib import Path

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
