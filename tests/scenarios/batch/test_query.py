"""Results as a SQLite table."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from scenarios.batch.query import COLUMNS, connect
from scenarios.batch.store import Store
from tests.scenarios.batch.small import record


def test_rows_are_the_newest_records(tmp_path: Path) -> None:
    """Axes, objectives and headroom are columns; unknown values are NULL."""
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


def test_a_heuristic_has_a_gap_beside_a_proof(tmp_path: Path) -> None:
    """Its gap is measured to any scenario's bound for the same inputs; its own gap is unknown."""
    proved = {"formulation": "auto", "objective": 8, "bound": 8, "gap": 0.0}
    alone = {"formulation": "dp", "objective": 10, "bound": None, "gap": None, "status": "feasible"}
    with Store(tmp_path) as store:
        store.append(record("a", **proved))
        store.append(record("b", **alone))
        store.append(record("c", **alone, axes={"hbm": 9}))
    rows = connect(tmp_path).execute("select gap, own_gap from results order by key").fetchall()
    assert [tuple(row) for row in rows] == [(0.0, 0.0), (0.2, None), (None, None)]


def test_an_empty_folder_is_an_empty_table(tmp_path: Path) -> None:
    """In this folder nothing was run yet."""
    assert connect(tmp_path).execute("select count(*) from results").fetchone()[0] == 0


@pytest.mark.parametrize(
    "query",
    [
        "attach 'made.db' as made",
        "vacuum into 'made.db'",
        "pragma journal_mode = wal",
        "pragma temp_store_directory = '.'",
        "create table made (a)",
        "delete from results",
        "select load_extension('made')",
    ],
)
def test_questions_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """Statements that write, or that name a file, are not authorized; no file appears."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sqlite3.Error, match=r"not authorized|authorization denied"):
        connect(tmp_path).execute(query).fetchall()
    assert list(tmp_path.iterdir()) == []


def test_questions_may_be_clever(tmp_path: Path) -> None:
    """Functions, JSON and recursion only read, so they are allowed."""
    with Store(tmp_path) as store:
        store.append(record("a"))
    row = (
        connect(tmp_path)
        .execute(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9) "
            "select sum(i), (select max(json_extract(options, '$.x')) from results) from n"
        )
        .fetchone()
    )
    assert tuple(row) == (45, None)
