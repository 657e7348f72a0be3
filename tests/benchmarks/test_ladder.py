"""The ladder's measuring tools: memory of a whole process tree, and the exponents of growth."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.pages import stored, update

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "ladder"

_HOLD = "import time; held = bytearray(80 << 20); held[:: 4096] = b'1' * (80 << 8); time.sleep({})"
_PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])"

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="memory is read from /proc"
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


@needs_proc
def test_memory_of_a_child_counts() -> None:
    """A grandchild's 80 MiB are counted, although the process itself stays far below that."""
    watch = import_module("watch").watch
    found = watch([sys.executable, "-c", _PARENT.format(_HOLD.format(2))], 1000, 60)
    assert found.ended == "done"
    assert found.exit == 0
    assert 80 <= found.peak_mib < 200


@needs_proc
def test_above_the_cap_is_killed() -> None:
    """If resident memory exceeds the cap, the whole tree is killed, and the result says why."""
    watch = import_module("watch").watch
    found = watch([sys.executable, "-c", _PARENT.format(_HOLD.format(100))], 70, 60)
    assert found.ended == "memory"
    assert found.exit != 0


@needs_proc
def test_too_long_is_killed() -> None:
    """A run past its time is killed, and the result says why; its output is kept."""
    watch = import_module("watch").watch
    code = "import time; print('begun', flush=True); time.sleep(100)"
    found = watch([sys.executable, "-c", code], 1000, 3)
    assert (found.ended, found.lines) == ("time", ["begun"])


def test_growth_finds_the_exponents() -> None:
    """Times of tables · ranks^0.5 give the exponents 1 and 0.5; a run that never got there is
    ignored."""
    growth = import_module("curves").growth
    rows = [
        {"tables": t, "ranks": n, "trace": [[0.1, None, 990, ""], [t * n**0.5, 1000, 990, ""]]}
        for t, n in [(100, 8), (1000, 8), (1000, 128), (5000, 1024)]
    ]
    rows.append({"tables": 300, "ranks": 8, "trace": [[1.0, 2000, 990, ""]]})
    fit = growth(rows)
    assert fit is not None
    assert fit["tables"] == pytest.approx(1)
    assert fit["ranks"] == pytest.approx(0.5)
    assert fit["explained"] == pytest.approx(1)
    assert fit["runs"] == 4


def test_the_page_shows_the_newest_result() -> None:
    """The tables of docs/scale.md are generated from the stored result, not typed."""
    plot = import_module("plot")
    tables = plot.tables(stored(FOLDER / "results"))
    message = "run: python benchmarks/ladder/plot.py"
    assert update(plot.PAGE, {plot.BLOCK: tables}, check=True) == 0, message
    assert tables.count("| 5,000 × 1,024 |") == 3
