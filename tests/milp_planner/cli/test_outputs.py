"""No output of a command replaces an input of it, or a file of another kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import Cli

_TWO = ("model.yaml", "cluster.yaml")


@pytest.mark.parametrize("target", ["model.yaml", "cluster.yaml", "plan.json", "other.yaml"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", *_TWO, "--from", "plan.json", "-o"),
        ("compare", *_TWO, "-o"),
        ("solve", "instance.json", "-o"),
        ("report", "plan.json", "-o"),
        ("export", "plan.json", "--to", "torchrec", "-o"),
        ("export", "plan.json", "--to", "tzrec", "-o"),
        ("audit", "plan.json", *_TWO, "--page"),
        ("audit", "plan.json", *_TWO, "-o"),
        ("import-plan", "exported.json", "model.yaml", "--from", "torchrec", "-o"),
        ("explain", "plan.json", "--ask", "replan", "-o"),
        ("explain", "plan.json", "--ask", "frontier", "--budgets", "2", "--csv"),
        ("calibrate", "--raw", "sweep.csv", "-o"),
    ],
)
def test_no_output_replaces_an_input_or_another_kind(
    cli: Cli, planned: Path, tmp_path: Path, arguments: tuple[str, ...], target: str
) -> None:
    """One sentence and code 2; every file is as it was, and no other has come."""
    assert cli("export", planned, "--to", "torchrec", "-o", "exported.json").code == 0
    (tmp_path / "other.yaml").write_text("name: notes\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = cli(*arguments, target)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert done.code == 2 and done.err.count("\n") == 1, (done.out, done.err)
    assert "cannot write" in done.err or "calibrate" in arguments, done.err
    assert after == before
