"""Results as a SQLite table."""

from __future__ import annotations

from pathlib import Path

from scenarios.batch.query import COLUMNS, connect
from scenarios.batch.store import Store
from tests.scenarios.batch.small import record


def test_rows_are_the_newest_records(tmp_path: Path) -> None:
    """Axes, objectives and headroom are columns; what is unknown is NULL."""
    error = {"type": "LostProcess", "message": "ended", "traceback": ""}
    with Store(tmp_path) as store:
        store.append(record("a", status="failed", error=error, objectives={}, headroom={}))
        store.append(record("b", status="failed", error=error))
        store.append(record("a"))
    rows = connect(tmp_path).execute("select * from results order by key").fetchall()
    assert [row["key"] for row in rows] == ["a", "b"]
    first = dict(rows[0])
    assert tuple(first) == COLUMNS and len(set(COLUMNS)) == len(COLUMNS)
    assert (first["hbm"], first["ddr"], first["total"], first["hbm_headroom"]) == (5, None, 7, 0.25)
    assert (first["error"], rows[1]["error"]) == (None, "LostProcess: ended")


def test_an_empty_folder_is_an_empty_table(tmp_path: Path) -> None:
    """Nothing was run yet."""
    assert connect(tmp_path).execute("select count(*) from results").fetchone()[0] == 0
