"""``milp-planner batch``: its output and its exit codes."""

import io
import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from milp_planner.cli.batch import _progress
from milp_planner.cli.main import run
from scenarios.batch.local import Task

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


def test_a_pipelined_step_in_a_batch(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suite may minimise it; the table has its value, and none of the other objectives."""
    suite.write_text(SUITE.replace("busiest_rank", "[pipelined_step, step_time]"))
    query = "select objective_kind, objective, pipelined_step, step_time from results"
    assert _batch(suite, "--json", "--query", query) == 0
    rows = json.loads(capsys.readouterr().out)["query"]
    assert {row["objective_kind"] for row in rows} == {"pipelined_step", "step_time"}
    for row in rows:
        own = row["objective_kind"]
        assert row[own] == row["objective"] > 0
        assert row["step_time" if own == "pipelined_step" else "pipelined_step"] is None


def test_a_run_and_a_second(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first run prints the table; the second gives --json of the same results, with a query,
    and solves nothing."""
    assert _batch(suite) == 0
    assert "2 solved now, 0 kept" in capsys.readouterr().out
    query = "select count(*) as n from results"
    assert _batch(suite, "--json", "--query", query) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["solved"], found["kept"], found["query"]) == (0, 2, [{"n": 2}])
    assert [r["status"] for r in found["results"]] == ["optimal", "optimal"]


def test_rows_about_what_was_solved(suite: Path, tmp_path: Path) -> None:
    """A row for each scenario solved now, none for those kept; a wrong file is told before."""
    rows = tmp_path / "runs.jsonl"
    assert _batch(suite, "--rows", str(tmp_path / "runs.txt")) == 2
    assert not (tmp_path / "out" / "results.jsonl").exists()
    assert _batch(suite, "--rows", str(rows)) == 0
    assert _batch(suite, "--rows", str(rows)) == 0
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["sku"], row["success"]) for row in found] == [("8xh100", True)] * 2


def test_a_broken_assertion_is_exit_1(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suite can guard a model in CI."""
    suite.write_text(SUITE + "assertions: [{name: all but a tenth is free, hbm_headroom: 90%}]\n")
    assert _batch(suite) == 1
    out = capsys.readouterr().out
    assert (
        "does not hold: all but a tenth is free (2 scenarios)" in out
        and "of HBM free, below 90%" in out
    )


def test_a_failed_scenario_is_exit_70(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The failed scenario is named, and the others have results."""
    text = SUITE.replace("8xh100", "1xa10").replace("ranks_per_machine: 2", "machines: [1, 2]")
    suite.write_text(text)
    assert _batch(suite) == 70
    assert "BadInput" in capsys.readouterr().out


def test_an_interruption_is_exit_130(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C or a polite kill, finished results stay, and the command says how to go on."""
    from scenarios.batch import runner

    whole = runner.run_local

    def stopped(tasks: Sequence[Task], workers: int, *_: object) -> Iterator[dict[str, Any]]:
        yield next(whole(tasks, workers))
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(runner, "run_local", stopped)
    assert _batch(suite) == 130
    assert "1 left, the same command goes on" in capsys.readouterr().out
    monkeypatch.undo()
    assert _batch(suite) == 0
    assert "1 solved now, 1 kept" in capsys.readouterr().out


def test_progress_shows_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows how many are done and failed, and an estimate of the time left."""
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=100)
    monkeypatch.setattr("milp_planner.cli.console.err", lambda: terminal)
    with _progress("small", []) as note:
        note(None, 1, 4)
        for done in (2, 3):
            time.sleep(0.15)
            note({"status": "failed"}, done, 4)
        time.sleep(0.15)
    shown = text.getvalue()
    assert "small (2 failed)" in shown and "3/4" in shown and "left" in shown
