"""``plan --from`` starts from yesterday's plan.json and says what moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_planner import read_plan, verify
from tests.milp_planner.cli.conftest import MODEL, Cli

GROWN = MODEL.replace("rows: 1M", "rows: 1200k") + "  - {name: new, rows: 20k, dim: 32}\n"


def again(cli: Cli, *more: object) -> object:
    """Plan the model as it is now, from the existing plan."""
    return cli("plan", "model.yaml", "cluster.yaml", "--from", "plan.json", "-o", "b.json", *more)


def test_nothing_changed_nothing_moves(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """The same tables, the same objective, no move, certified."""
    done = again(cli)
    assert done.code == 0, done.err
    before, after = read_plan(planned), read_plan(tmp_path / "b.json")
    assert after.tables == before.tables and after.outcome.objective == before.outcome.objective
    assert after.status == "optimal" and after.outcome.certified_bound == after.outcome.objective
    document = json.loads((tmp_path / "b.json").read_text())
    assert document["moves"]["tables"] == [] and document["moves"]["bytes"] == 0
    assert "moves: 0 tables, 0 B of" in done.out


def test_what_grew_came_and_went(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A re-solve is a plan like any other: it verifies, and exports need nothing more."""
    (tmp_path / "model.yaml").write_text(GROWN.replace("- {name: ads", "- {name: other"))
    done = again(cli, "--max-moved", "0")
    assert done.code == 0, done.err
    plan = read_plan(tmp_path / "b.json")
    assert verify(plan).ok and [t.name for t in plan.tables] == ["users", "items", "other", "new"]
    assert json.loads((tmp_path / "b.json").read_text())["moves"]["new"] == ["other", "new"]
    assert "new: other, new" in done.out
    assert cli("verify", "b.json").code == 0


def test_a_machine_that_is_gone(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """From two ranks to one: tables that were on the lost rank are named."""
    text = (tmp_path / "cluster.yaml").read_text()
    text = text.replace("ranks_per_machine: 2", "ranks_per_machine: 1").replace("2GiB", "6GiB")
    (tmp_path / "cluster.yaml").write_text(text)
    done = again(cli, "--lost", "0")
    assert done.code == 0, done.err
    moves = json.loads((tmp_path / "b.json").read_text())["moves"]
    assert set(moves["displaced"]) <= set(moves["tables"]) and moves["displaced"]


@pytest.mark.parametrize("limit", ["-3", "101%", "nan%", "ten", "5 parsecs"])
def test_limits_that_are_none(cli: Cli, planned: Path, tmp_path: Path, limit: str) -> None:
    """Invalid limits get one sentence and exit code 2; nothing is written."""
    done = again(cli, f"--max-moved={limit}")
    assert done.code == 2 and "moved" in done.err and done.err.count("\n") == 1, done.err
    assert not (tmp_path / "b.json").exists()


def test_plans_that_are_none(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A missing file, a file that is no plan, another model's plan, an unknown rank: one sentence,
    exit code 2."""
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    for name in ("absent.json", "other.json", "broken.json"):
        done = cli("plan", "model.yaml", "cluster.yaml", "--from", name, "-o", "b.json")
        assert done.code == 2 and name in done.err and done.err.count("\n") == 1, done.err
    done = again(cli, "--lost", "7")
    assert done.code == 2 and "lost rank 7" in done.err
    (tmp_path / "model.yaml").write_text(MODEL.replace("name: ", "name: x_"))
    done = again(cli)
    assert done.code == 2 and "none of the tables" in done.err
    assert not (tmp_path / "b.json").exists()


def test_a_plan_of_another_version(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """A plan priced by another version is accepted, since everything is priced anew."""
    document = json.loads(planned.read_text())
    document["version"] = "0.0.1"
    planned.write_text(json.dumps(document))
    assert again(cli).code == 0


def test_a_price_on_moves(cli: Cli, planned: Path, tmp_path: Path) -> None:
    """Nothing has to move at any price, so the sum equals the objective; it is certified and
    verified."""
    done = again(cli, "--move-cost", "1ms/GB")
    assert done.code == 0, done.err
    assert "with moves at" in done.out and "of which 0 ps for moves" in done.out
    done = cli("verify", "b.json")
    assert done.code == 0 and "moves: certified bound" in done.out
    done = again(cli, "--move-cost", "1ms")
    assert done.code == 2 and "such as 1ms/GB" in done.err and done.err.count("\n") == 1


def test_options_that_need_from(cli: Cli) -> None:
    """A limit on moves needs a plan to count them from."""
    done = cli("plan", "model.yaml", "cluster.yaml", "--max-moved", "3")
    assert done.code == 2 and "goes with --start" in done.err
