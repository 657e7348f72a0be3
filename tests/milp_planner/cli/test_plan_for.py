"""``milp-planner plan --for``: what a trainer can be made to run, and what bounds it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.milp_planner.cli.conftest import Cli

MODEL = {
    "name": "m",
    "workload": {"batch_per_rank": 8},
    "defaults": {"dim": 512, "output": "sequence"},
    "tables": [
        {"name": "a", "rows": 5000, "sequence_length": 100},
        {"name": "b", "rows": 700, "sequence_length": 50},
    ],
}


def test_it_exports_exactly(cli: Cli, tmp_path: Path) -> None:
    """The printout names trainer and bound; the export of the plan runs as it is."""
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL))
    asked = ("plan", "m.yaml", "cluster.yaml", "--for", "dlrmv4", "--time-limit", "4")
    done = cli(*asked, "-o", "p.json")
    assert done.code == 0, done.err
    words = " ".join(done.out.split())
    assert "dlrmv4 runs this plan as it is, at" in words and "no plan at all is below" in words
    assert cli("export", "p.json", "--to", "dlrmv4", "--json").json["runs"]["exact"]
    assert cli("verify", "p.json").code == 0


def test_the_trainers_own_file_is_audited_as_it_runs(cli: Cli, tmp_path: Path) -> None:
    """DLRMv4's variables are replayed: today's plan costs what was planned for that trainer."""
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL))
    asked = ("plan", "m.yaml", "cluster.yaml", "--for", "dlrmv4", "--time-limit", "4")
    plan = cli(*asked, "--json").json
    (tmp_path / "p.json").write_text(json.dumps(plan))
    assert cli("export", "p.json", "--to", "dlrmv4", "-o", "env.sh").code == 0
    audit = cli("audit", "env.sh", "m.yaml", "cluster.yaml", "--time-limit", "4", "--json").json
    assert audit["fits"] and audit["objective"] == plan["outcome"]["objective"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--for", "dlrm4"), "did you mean dlrmv4"),
        (("--for", "dlrmv4", "--from", "x.json", "--move-cost", "1ms/GB"), "--move-cost"),
    ],
)
def test_bad_input(cli: Cli, tmp_path: Path, more: tuple[str, ...], sentence: str) -> None:
    """Unknown trainers, and a price on moves: one sentence, exit code 2."""
    (tmp_path / "m.yaml").write_text(json.dumps(MODEL))
    done = cli("plan", "m.yaml", "cluster.yaml", *more, "-o", "p.json")
    assert done.code == 2 and sentence in done.err
    assert not (tmp_path / "p.json").exists()
