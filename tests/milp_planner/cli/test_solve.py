"""``milp-planner solve``: instance files in, outcomes out.

``-`` as an input: models, clusters and plans from standard input.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from formulations import write_instance
from formulations.runtime import regular_file
from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli
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


def test_a_model_from_a_pipe(cli: Cli, tmp_path: Path) -> None:
    """``check`` reads it several times and names it ``-``."""
    done = subprocess.run(
        [sys.executable, "-m", "milp_planner", "check", "-", "cluster.yaml"],
        input=MODEL, capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no problems in - and cluster.yaml")


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets what standard input has."""
    return lambda text: monkeypatch.setattr(regular_file, "_standard_input", text.encode)


def test_inputs_from_standard_input(cli: Cli, planned: Path, stdin: Callable[[str], None]) -> None:
    """A model in JSON, and one with a mistake; a cluster; a plan that ``verify`` re-derives,
    ``report`` draws and ``audit`` takes as today's."""
    model = json.dumps(yaml.safe_load(MODEL))
    stdin(model)
    assert cli("check", "-", "cluster.yaml").out.startswith("no problems in - and cluster.yaml")
    stdin(model.replace("dim", "dmi", 1))
    done = cli("check", "-", "cluster.yaml")
    assert done.code == 2 and "tables[0].dmi: unknown field" in done.out
    stdin(CLUSTER)
    done = cli("plan", "model.yaml", "-", "-f", "greedy", "--json")
    assert done.code == 0 and done.json["format"] == "milp-planner-plan/1"
    stdin(planned.read_text())
    assert "every claim was re-derived" in cli("verify", "-").out
    assert cli("report", "-", "--json").json["verdict"]["status"] == "optimal"
    assert cli("audit", "-", "model.yaml", "cluster.yaml", "-f", "greedy").code == 0
