"""Generated blocks of pages match the stored results, and no page refutes another. Blocks of pages
are replaced whole, and the text around them is not touched. The table of gaps of the catalogue.

The gallery's curves are those of their inputs, and possible.
"""

import json
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.frontier import curves
from benchmarks.pages import replaced, stored, update

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*/README.md")]
_BLOCK = re.compile(r"<!-- [\w -]+: (benchmarks/[\w/-]+\.py) -->\n(.*?)\n<!-- end -->", re.DOTALL)
WRITERS = sorted({script for p in PAGES for script, _ in _BLOCK.findall(p.read_text("utf-8"))})


def rows(page: Path, *columns: str) -> dict[str, list[float]]:
    """Columns of the tables in a page's generated blocks, by the column ``instance``; the unit and
    the range of a cell are left out."""
    found: dict[str, list[float]] = {}
    for _, block in _BLOCK.findall(page.read_text("utf-8")):
        head: list[str] = []
        for line in block.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if "instance" in cells:
                head = cells
            elif {*columns} <= {*head} and len(cells) == len(head) and "---" not in cells:
                values = [cells[head.index(column)].split()[0].rstrip("%") for column in columns]
                found[cells[head.index("instance")]] = list(map(float, values))
    return found


@pytest.mark.parametrize("script", WRITERS)
def test_blocks_are_up_to_date(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script that a block names, called with ``--check``, finds nothing to write."""
    folder = (ROOT / script).parent
    monkeypatch.setattr(sys, "argv", [script, "--check"])
    monkeypatch.syspath_prepend(str(folder))
    for neighbour in folder.glob("*.py"):  # other folders have modules of that name, too
        monkeypatch.delitem(sys.modules, neighbour.stem, raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert not end.value.code, f"run: python {script}"


def test_there_are_blocks_to_check() -> None:
    """The pattern finds the scripts of the pages that this test is about."""
    assert {"benchmarks/readme_table.py", "benchmarks/torchrec-gap/table.py",
            "benchmarks/suites/tables.py"} <= set(WRITERS)  # fmt: skip


def test_prose_does_not_retell_the_tables() -> None:
    """The text of the results repeats no plan of an instance that a table shows."""
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    prose = _BLOCK.sub("", page)
    assert not re.findall(r"`\d+x\d+_s\d+[^`]*`[^.]*\d+\.\d+ ms", prose)


def test_measured_pages_say_when() -> None:
    """Every page with a block of results states a date."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if _BLOCK.search(text):
            assert re.search(r"20\d\d-\d\d-\d\d", text), page


PAGE = """# A page

<!-- one: a.py -->
old

lines
<!-- end -->

text
<!-- two -->
2
<!-- end -->
"""


def test_only_the_named_block_changes() -> None:
    """Surrounding text and other blocks stay, and so do the marks, for a second run to find."""
    new = replaced(PAGE, {"one: a.py": r"\1 new"})
    assert new == PAGE.replace("old\n\nlines", r"\1 new")
    assert replaced(new, {"one: a.py": "old\n\nlines"}) == PAGE


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("none", "0 times"),
        (PAGE + PAGE, "2 times"),
        ("<!-- one: a.py -->\nold\n", "has no <!-- end -->"),
        (PAGE.replace("<!-- end -->", "", 1), "has no <!-- end -->"),
    ],
)
def test_a_page_without_the_block_is_refused(page: str, said: str) -> None:
    """A missing, doubled or unclosed mark is reported, and the next block's text is not lost."""
    with pytest.raises(ValueError, match=said):
        replaced(page, {"one: a.py": "new"})


def test_check_writes_nothing(tmp_path: Path) -> None:
    """With ``check``, the exit code says whether the page is up to date; without it, the page is
    written."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert update(page, {"two": "3"}, check=True) == 1
    assert page.read_text() == PAGE
    assert update(page, {"two": "3"}) == 0
    assert update(page, {"two": "3"}, check=True) == 0


def test_the_newest_result_is_that_of_the_last_date(tmp_path: Path) -> None:
    """Given a folder, the file with the last name counts; given a file, that file."""
    for day in ("2026-01-09", "2025-12-31"):
        (tmp_path / f"{day}.json").write_text(json.dumps({"date": day}))
    assert stored(tmp_path)["date"] == "2026-01-09"
    assert stored(tmp_path / "2025-12-31.json")["date"] == "2025-12-31"


FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "catalogue"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, whose module name others have too."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "table", raising=False)
    return import_module("table")


def run(objective: int | None, bound: int) -> Any:
    """One run, certified to half of its bound."""
    return {
        "instance": "m_c", "tables": 1000, "ranks": 8,
        "objective": objective, "bound": bound, "certified_bound": bound // 2,
        "status": "optimal" if objective == bound else "feasible",
    }  # fmt: skip


def test_medians_of_the_runs_of_an_instance(table: Any) -> None:
    """Plans of 2, 4 and 5 ms at a bound of 2 ms: gaps 0, 50% and 60%, certified 50%, 75%, 80%."""
    found = {"rows": [run(plan * 10**9, 2 * 10**9) for plan in (5, 2, 4)]}
    text = table.table(found, {"m_c": "unseen"})
    assert text.splitlines()[-1] == "| m × c * | 1,000, 8 | 4 | 50.00% | 75.00% | 1 of 3 |"


def test_no_plan_is_a_gap_of_all(table: Any) -> None:
    """A run without a plan has a gap of 100%."""
    last = table.table({"rows": [run(None, 2 * 10**9)]}, {}).splitlines()[-1]
    assert last == "| m × c | 1,000, 8 | none | 100.00% | 100.00% | 0 of 1 |"


def test_the_stash_curve_is_that_of_the_page() -> None:
    """Model and cluster are the example of docs/hardware.md."""
    model, cluster = curves.inputs("stash")
    assert [table.name for table in model.tables] == ["a", "b", "c"] and cluster.num_ranks == 2


@pytest.mark.parametrize("name", curves.CURVES)
def test_more_never_costs_more(name: str) -> None:
    """Every limit has a point; plans and bounds fall, and no plan is below its bound."""
    points = json.loads(curves.STORED.read_text("utf-8"))["curves"][name]["points"]
    assert [budget for budget, _, _ in points] == curves.CURVES[name][1]
    plans, bounds = [plan for _, plan, _ in points], [bound for _, _, bound in points]
    assert plans == sorted(plans, reverse=True) and bounds == sorted(bounds, reverse=True)
    assert all(bound <= plan for plan, bound in zip(plans, bounds, strict=True))
