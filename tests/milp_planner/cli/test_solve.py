"""``milp-planner solve``: instance files in, outcomes out."""

from __future__ import annotations

import json
from pathlib import Path

from formulations import write_instance
from tests.milp_planner.cli.conftest import Cli
from tests.milp_planner.features.example import example


def test_solves_prints_and_writes(cli: Cli, tmp_path: Path) -> None:
    """By hand: b's 20 and 1 on one rank, a table-wise on the other, c on no rank."""
    write_instance(example(), tmp_path / "i.json.gz")
    done = cli("solve", "i.json.gz", "-f", "cpsat", "-o", "o.json")
    assert done.code == 0 and "OPTIMAL" in done.out and "written: o.json" in done.out
    outcome = json.loads((tmp_path / "o.json").read_text())
    # fwd: b's rank needs 20, a on the other 9; bwd: a's 9 (or 4 row-wise, then b's rank 23 and 5)
    assert outcome["objective"] == min(20 + 9, 23 + 5) == outcome["bound"]
    assert cli("verify", "o.json", "--instance", "i.json.gz").code == 0


def test_another_objective_may_be_asked(cli: Cli, tmp_path: Path) -> None:
    """The file's objective is only the default."""
    write_instance(example(), tmp_path / "i.json")
    done = cli("solve", "i.json", "-f", "cpsat", "--objective", "total", "--json")
    assert done.json["objective_kind"] == "total"
    assert done.json["objective"] == 18 + 21 + 4


def test_infeasible_is_one(cli: Cli, tmp_path: Path) -> None:
    """An infeasible instance is an answer with exit code 1."""
    write_instance(example(hbm=65), tmp_path / "i.json")
    done = cli("solve", "i.json", "-f", "cpsat")
    assert done.code == 1 and "INFEASIBLE" in done.out and "hbm of each rank" in done.out
