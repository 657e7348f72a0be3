"""``milp-planner batch``: what it prints and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_planner.cli.main import run

SUITE = """
name: small
models: ["generated:tables=4,seed=1,kind=mixed,max_rows=200_000"]
clusters: [8xh100]
formulations: [greedy]
sweep: {ranks_per_machine: 2, hbm: [32MiB, 8GiB]}
objectives: busiest_rank
time_limit: 60
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of two scenarios."""
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    return path


def _batch(path: Path, *more: str) -> int:
    return run(["batch", str(path), "-o", str(path.parent / "out"), "--workers", "1", *more])


def test_a_run_and_a_second(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table, then --json of the same results without solving again, with a query."""
    assert _batch(suite) == 0
    assert "2 solved now, 0 kept" in capsys.readouterr().out
    query = "select count(*) as n from results"
    assert _batch(suite, "--json", "--query", query) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["solved"], found["kept"], found["query"]) == (0, 2, [{"n": 2}])
    assert [r["status"] for r in found["results"]] == ["feasible", "feasible"]


def test_a_broken_assertion_is_exit_1(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suite guards a model's CI."""
    suite.write_text(SUITE + "assertions: [{name: half is free, hbm_headroom: 50%}]\n")
    assert _batch(suite) == 1
    out = capsys.readouterr().out
    assert "does not hold: half is free (2 scenarios)" in out and "of HBM free, below 50%" in out


def test_a_failed_scenario_is_exit_70(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and the others are there."""
    text = SUITE.replace("8xh100", "1xa10").replace("ranks_per_machine: 2", "machines: [1, 2]")
    suite.write_text(text)
    assert _batch(suite) == 70
    assert "BadInput" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--address", "auto"], "--engine ray"),
        (["--query", "select x from results"], "--query: "),
        (["--workers", "0"], "found 0"),
    ],
)
def test_bad_options(
    suite: Path, more: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence each, exit 2."""
    assert _batch(suite, *more) == 2
    assert sentence in capsys.readouterr().err


def test_an_unknown_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest shipped name is offered."""
    assert run(["batch", "dp-vs-exat", "-o", str(tmp_path / "out")]) == 2
    assert "did you mean dp-vs-exact" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
