"""Tables that today's plan lacks are new and free to place."""

from __future__ import annotations

from pathlib import Path

from milp_planner import read_plan
from tests.milp_planner.cli.conftest import Cli

CSV = """\
table, mode, ratio, sharding_type, ranks
users, HBM_ONLY, , table_wise, 0
items, HBM_ONLY, , table_wise, 0
"""


def test_a_new_table_is_placed_and_no_move(cli: Cli, tmp_path: Path) -> None:
    """``plan`` places ads; since nothing old may get worse or move, ads alone is new."""
    (tmp_path / "today.csv").write_text(CSV)
    done = cli(
        "plan", "model.yaml", "cluster.yaml", "--today", "today.csv", "-f", "cpsat", "--json"
    )
    assert done.code == 0, done.err
    assert [t["name"] for t in done.json["tables"]] == ["users", "items", "ads"]
    assert list(done.json["instance"]["current"]) == ["users", "items"]


def test_moves_leave_the_new_table_where_the_plan_has_it(cli: Cli, tmp_path: Path) -> None:
    """The new table is not among the moves; those of old tables are."""
    (tmp_path / "today.csv").write_text(CSV)
    assert cli("plan", "model.yaml", "cluster.yaml", "-f", "cpsat").code == 0
    done = cli("explain", "plan.json", "--ask", "moves", "--today", "today.csv", "--json")
    assert done.code == 0, done.err
    moved = {each["table"] for each in done.json["moves"]["tables"]}
    assert "items" in moved and "ads" not in moved


def test_replan_counts_from_today_and_places_the_new_table(cli: Cli, tmp_path: Path) -> None:
    """At limit 0, users and items stay and ads is placed; it is named as new."""
    (tmp_path / "today.csv").write_text(CSV)
    assert cli("plan", "model.yaml", "cluster.yaml", "-f", "cpsat").code == 0
    ask = ("--ask", "replan", "--today", "today.csv", "--limits", "0", "-f", "cpsat")
    done = cli("explain", "plan.json", *ask, "-o", "next.json", "--json")
    assert done.code == 0, done.err
    assert done.json["replan"]["new_tables"] == ["ads"]
    assert done.json["replan"]["steps"][0]["moved"] == []
    assert [t.name for t in read_plan(tmp_path / "next.json").tables] == ["users", "items", "ads"]
    assert "new tables, free to place: ads" in cli("explain", "plan.json", *ask).out


def test_audit_still_wants_every_table(cli: Cli, tmp_path: Path) -> None:
    """A table that does not run today cannot be judged."""
    (tmp_path / "today.csv").write_text(CSV)
    done = cli("audit", "today.csv", "model.yaml", "cluster.yaml", "-f", "cpsat")
    assert done.code == 2 and "does not place table ads" in done.err
