"""``milp-planner windows``: a table, advice, JSON, and exit codes."""

from __future__ import annotations

from pathlib import Path

from tests.milp_planner.cli.conftest import Cli

MODEL = """\
name: sequences
workload: {batch_per_rank: 256}
tables:
  - name: items
    rows: 100k
    dim: 64
    output: sequence
    sequence_length: 100
    constraints: {sharding_types: [row_wise], modes: HBM_ONLY}
"""


def test_a_plan_over_windows(cli: Cli, tmp_path: Path) -> None:
    """It survives its own load; with a burst, exit code 1 and the window by name."""
    (tmp_path / "sequences.yaml").write_text(MODEL)
    assert cli("plan", "sequences.yaml", "cluster.yaml", "-o", "p.json").code == 0
    (tmp_path / "quiet.csv").write_text("window,rows\nmon,20000\ntue,30000\n")
    done = cli("windows", "quiet.csv", "p.json")
    assert done.code == 0
    assert "2 of 2" in done.out and "does not pay" in done.out
    (tmp_path / "burst.csv").write_text("window,items\nmon,20000\ntue,30M\n")
    done = cli("windows", "burst.csv", "p.json", "--json")
    assert done.code == 1
    [found] = done.json["plans"]
    assert (found["dies"], found["fits"]) == ("tue", [True, False])
    assert done.json["stretches"] == []


def test_what_is_refused(cli: Cli, tmp_path: Path) -> None:
    """A missing file, an unknown column: exit code 2 and one sentence."""
    (tmp_path / "sequences.yaml").write_text(MODEL)
    assert cli("plan", "sequences.yaml", "cluster.yaml", "-o", "p.json").code == 0
    assert cli("windows", "absent.csv", "p.json").code == 2
    (tmp_path / "bad.csv").write_text("window,item\nmon,1\n")
    done = cli("windows", "bad.csv", "p.json")
    assert done.code == 2
    assert "did you mean items?" in done.err
