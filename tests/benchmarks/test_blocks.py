"""Generated blocks of pages match the stored results, and no page refutes another."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_blocks_are_up_to_date(script: str) -> None:
    """The script that a block names, called with ``--check``, finds nothing to write."""
    command = [sys.executable, str(ROOT / script), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"run: python {script}\n{done.stderr}"


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
