"""Generated blocks of pages match the stored results, and pages agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*/README.md")]
_BLOCK = re.compile(r"<!-- [\w -]+: (benchmarks/[\w/-]+\.py) -->\n(.*?)\n<!-- end -->", re.DOTALL)
WRITERS = sorted({script for p in PAGES for script, _ in _BLOCK.findall(p.read_text("utf-8"))})


def rows(page: Path, column: str) -> dict[str, str]:
    """One column of the tables in a page's generated blocks, by the column ``instance``."""
    found: dict[str, str] = {}
    for _, block in _BLOCK.findall(page.read_text("utf-8")):
        head: list[str] = []
        for line in block.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if "instance" in cells:
                head = cells
            elif column in head and len(cells) == len(head) and "---" not in cells:
                found[cells[head.index("instance")]] = cells[head.index(column)]
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
            "benchmarks/ladder/plot.py", "benchmarks/rebuild/table.py"} <= set(WRITERS)  # fmt: skip


def test_an_instance_has_one_plan_on_all_pages() -> None:
    """The page against TorchRec and the rebuild's table show the same plan of an instance, to the
    digit."""
    here = rows(ROOT / "docs" / "against-torchrec.md", "ours ms: best")
    there = rows(ROOT / "benchmarks" / "rebuild" / "README.md", "plan now")
    both = here.keys() & there.keys()
    assert len(both) >= 10
    assert {name: f"{here[name]} ms" for name in both} == {name: there[name] for name in both}


def test_prose_does_not_retell_the_tables() -> None:
    """The text of the page against TorchRec repeats no plan that its table shows."""
    page = (ROOT / "docs" / "against-torchrec.md").read_text("utf-8")
    prose = _BLOCK.sub("", page)
    assert not re.findall(r"`\d+x\d+_s\d+[^`]*`[^.]*\d+\.\d+ ms", prose)


def test_measured_pages_say_when() -> None:
    """Every page with a block of results states a date."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if _BLOCK.search(text):
            assert re.search(r"20\d\d-\d\d-\d\d", text), page
