"""``-`` as an input: models, clusters and plans from standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.milp_planner.cli.conftest import CLUSTER, MODEL, Cli


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
