"""Rows about planner runs, in both kinds of files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.plans.run_rows import COLUMNS, RunRow, append_rows, check_rows_file

GOOD = RunRow("8xh100", success=True, max_rank_perf=2.0, mean_rank_perf=1.0, gap=0.5, seed=3)
BAD = RunRow("tiny", success=False, planner_error_type="insufficient_storage")


@pytest.mark.parametrize("name", ["runs.sqlite", "runs.db"])
def test_a_database_grows(tmp_path: Path, name: str) -> None:
    """Rows are added to those of earlier runs, successes and failures alike, under their names."""
    path = tmp_path / name
    append_rows(path, [GOOD, BAD])
    append_rows(path, [GOOD])
    with closing(sqlite3.connect(path)) as database:
        asked = "select sku, success, gap, planner_error_type from runs order by rowid"
        found = database.execute(asked).fetchall()
    good = ("8xh100", 1, 0.5, None)
    assert found == [good, ("tiny", 0, None, "insufficient_storage"), good]


def test_lines_grow(tmp_path: Path) -> None:
    """Each run is one line of JSON with every column."""
    path = tmp_path / "runs.jsonl"
    append_rows(path, [GOOD])
    append_rows(path, [BAD])
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["sku"] for row in rows] == ["8xh100", "tiny"]
    assert all(tuple(row) == COLUMNS for row in rows)


def test_a_wrong_file_is_refused_early(tmp_path: Path) -> None:
    """Another suffix, a folder that is not there, a text that is no database, other columns."""
    with pytest.raises(BadInput, match=r"found suffix '.csv'.*\.jsonl"):
        check_rows_file(tmp_path / "runs.csv")
    with pytest.raises(BadInput, match="does not exist"):
        check_rows_file(tmp_path / "nowhere" / "runs.jsonl")
    text = tmp_path / "text.sqlite"
    text.write_text("not a database, but long enough to look at " * 40)
    with pytest.raises(BadInput, match="not a database"):
        check_rows_file(text)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("create table runs (sku, success)")
    with pytest.raises(BadInput, match="lacks planner_error_type"):
        append_rows(other, [GOOD])
