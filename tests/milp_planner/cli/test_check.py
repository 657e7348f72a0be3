"""``milp-planner check`` as a user runs it."""

from __future__ import annotations

from pathlib import Path

from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli


def test_nothing_wrong_is_one_line(cli: Cli) -> None:
    """Exit code 0, one line; with --json an empty list."""
    done = cli("check", "model.yaml", "cluster.yaml")
    assert done.code == 0 and done.out.count("\n") == 1 and "no problems" in done.out
    assert cli("check", "model.yaml", "cluster.yaml", "--json").json == []


def test_every_problem_is_a_line(cli: Cli, tmp_path: Path) -> None:
    """Exit code 2; what plan counts, check lists, in text and as objects."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("dim", "dime"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("450GB/s", "450"))
    planned = cli("plan", "model.yaml", "cluster.yaml")
    assert planned.code == 2
    assert "(and 5 more: milp-planner check MODEL CLUSTER lists them)" in planned.err
    done = cli("check", "model.yaml", "cluster.yaml")
    lines = done.out.splitlines()
    assert done.code == 2 and len(lines) == 7
    assert lines[0].startswith("model.yaml:4: tables[0].dime: unknown field; did you mean")
    listed = cli("check", "model.yaml", "cluster.yaml", "--json")
    assert listed.code == 2 and listed.json[0].keys() == {"message", "field", "file", "line"}
    assert listed.json[6]["file"] == "cluster.yaml" and listed.json[6]["line"] == 7
