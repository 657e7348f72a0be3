"""Results as a SQLite table. The suite shown in the docs can be read.

Records of a batch as rows about runs.
"""

import re
import sqlite3
from pathlib import Path

import pytest

from milp_planner.inputs.cluster import Reservations
from milp_planner.inputs.two_d import TwoD
from scenarios.batch.query import COLUMNS, connect
from scenarios.batch.rows import run_rows
from scenarios.batch.store import Store
from scenarios.batch.suite import AXES, load_suite
from tests.corpus import mistakes
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


@pytest.mark.parametrize("query", mistakes(__file__, "questions only read"))
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


PAGE = Path(__file__).resolve().parents[3] / "docs" / "suites.md"


def test_the_example_reads(tmp_path: Path) -> None:
    """It shows every axis and a path, except that one field may stand for a group of them."""
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "suite.yaml"
    path.write_text(found[1])
    shown = {name for name, values in load_suite(path).sweep.to_dict().items() if values}
    for fields in (Reservations.model_fields, TwoD.model_fields):
        assert shown & set(fields)
        shown |= set(fields) & set(AXES)
    assert {name for name in shown if "." not in name} == set(AXES)
    assert any("." in name for name in shown)


def test_a_plan_and_its_quality() -> None:
    """Costs in picoseconds become milliseconds; the mean is over ranks, gaps are of both bounds."""
    costs = {"total": 8 * 10**9, "busiest_rank": 4 * 10**9, "step_time": 5 * 10**9}
    given = record(
        "a", objectives=costs, objective=5 * 10**9, bound=4 * 10**9, certified_bound=10**9, ranks=4,
        seconds=2.0, seed=9,
    )  # fmt: skip
    row = run_rows([given])[0]
    assert (row.success, row.planner_error_type) == (True, None)
    assert (row.critical_path_ms, row.max_rank_perf, row.mean_rank_perf) == (5.0, 4.0, 2.0)
    assert (row.perf_imbalance_ratio, row.solve_time_ms, row.seed) == (2.0, 2000.0, 9)
    assert row.gap == pytest.approx(0.2) and row.certified_gap == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("status", "kind"),
    [("infeasible", "strict_constraints"), ("unknown", "other"), ("failed", "other")],
)
def test_what_failed_has_torchrecs_name(status: str, kind: str) -> None:
    """Without a plan there are no figures, but the kind of failure and the reason."""
    error = {"type": "LostProcess", "message": "ended"} if status == "failed" else None
    given = record("a", status=status, error=error, note="too small")
    given = {**given, "objective": None, "objectives": {}, "bound": None, "gap": None}
    row = run_rows([given])[0]
    assert (row.success, row.planner_error_type, row.max_rank_perf) == (False, kind, None)
    assert row.planner_failure_reason == ("LostProcess: ended" if error else "too small")
