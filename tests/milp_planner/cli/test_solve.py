"""``milp-planner solve``: instance files in, outcomes out.

``-`` as an input: models, clusters and plans from standard input.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from formulations import write_instance
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


def piped(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own that reads a text from a pipe."""
    return subprocess.run(
        [sys.executable, "-m", "milp_planner", *arguments],
        input=text, capture_output=True, text=True, cwd=folder, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_model_from_a_pipe(cli: Cli, tmp_path: Path, form: str) -> None:
    """YAML or JSON; ``check`` reads it several times and names it ``-``."""
    text = MODEL if form == "yaml" else json.dumps(yaml.safe_load(MODEL))
    done = piped(tmp_path, text, "check", "-", "cluster.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no problems in - and cluster.yaml")
    done = piped(tmp_path, text.replace("dim", "dmi", 1), "check", "-", "cluster.yaml")
    assert done.returncode == 2
    assert "tables[0].dmi: unknown field" in done.stdout


def test_a_cluster_from_a_pipe(cli: Cli, tmp_path: Path) -> None:
    """The other input is a file."""
    done = piped(tmp_path, CLUSTER, "plan", "model.yaml", "-", "-f", "greedy", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["format"] == "milp-planner-plan/1"


def test_a_plan_from_a_pipe(cli: Cli, planned: Path) -> None:
    """``verify`` re-derives its claims, ``report`` draws it, ``audit`` takes it as today's."""
    text, folder = planned.read_text(), planned.parent
    assert "every claim was re-derived" in piped(folder, text, "verify", "-").stdout
    done = piped(folder, text, "report", "-", "--json")
    assert json.loads(done.stdout)["verdict"]["status"] == "optimal"
    audited = piped(folder, text, "audit", "-", "model.yaml", "cluster.yaml", "-f", "greedy")
    assert audited.returncode == 0, audited.stderr


def test_a_pipe_by_its_name_is_told_of_the_dash(cli: Cli, tmp_path: Path) -> None:
    """``/dev/stdin`` is no regular file; the sentence says what to write instead."""
    done = piped(tmp_path, MODEL, "plan", "/dev/stdin", "cluster.yaml")
    assert done.returncode == 2
    assert "- reads standard input" in done.stderr
