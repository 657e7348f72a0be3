"""The CSV of loads: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.features.windows.loads import Window, read_loads


def read(folder: Path, text: str) -> tuple[Window, ...]:
    """Read a file with this text, for the tables a and b."""
    path = folder / "loads.csv"
    path.write_text(text)
    return read_loads(path, ["a", "b"], 7)


def test_rows_and_tables(tmp_path: Path) -> None:
    """One load for all tables, or one for each; steps where they differ; comments are skipped."""
    assert read(tmp_path, "window,rows\n# x\nw0,1k\n") == (Window("w0", {"rows": 1000}, 7),)
    found = read(tmp_path, "window,b,steps,a\nw0,5,3,0\n")
    assert found == (Window("w0", {"b": 5, "a": 0}, 3),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no header"),
        ("window,rows\n", "no window"),
        ("rows,window\nx,1\n", "column 'window'"),
        ("window,c\nw,1\n", "column 'c'"),
        ("window,a,a\nw,1,1\n", "each name once"),
        ("window,rows,a\nw,1,1\n", "not both"),
        ("window,steps\nw,1\n", "not both"),
        ("window,rows\nw\nv,-1\nu,3,4\n", "loads.csv:2: found 1 cells"),
        ("window,rows\nw,x\n", "loads.csv:2"),
        ("window,rows,steps\nw,1,0\n", "from 1"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """One sentence with file and line."""
    with pytest.raises(BadInput, match=words):
        read(tmp_path, text)
