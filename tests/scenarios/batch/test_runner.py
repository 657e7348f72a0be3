"""A suite run into a folder: resumed, interrupted, partly failing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from milp_planner import read_plan
from scenarios.batch.query import connect
from scenarios.batch.runner import run_batch
from scenarios.batch.store import FILE, Record, Store
from scenarios.batch.suite import Suite
from tests.scenarios.batch.small import suite


def test_a_second_call_solves_nothing(tmp_path: Path) -> None:
    """Results are found by their keys, whatever else is in the folder."""
    with Store(tmp_path) as store:
        store.append({"key": "of another suite", "status": "optimal"})
    first = run_batch(suite(), tmp_path, workers=1)
    again = run_batch(suite(), tmp_path, workers=1)
    assert (first.solved, again.solved) == (4, 0)
    assert first.results == again.results and len(first.results) == 4
    assert {r["suite"] for r in first.results} == {"small"}


def test_plans_are_kept_where_asked(tmp_path: Path) -> None:
    """Each plan is a plan.json of its own, named by its record; by default none is kept."""
    batch = run_batch(suite(), tmp_path / "kept", workers=1, plans=True)
    for record in batch.results:
        plan = read_plan(tmp_path / "kept" / record["plan"])
        assert plan.outcome.objective == record["objective"]
        assert plan.outcome.formulation == record["formulation"]
    names = [row["plan"] for row in connect(tmp_path / "kept").execute("select plan from results")]
    assert names == [record["plan"] for record in batch.results]
    bare = run_batch(suite(), tmp_path / "bare", workers=1)
    assert not (tmp_path / "bare" / "plans").exists()
    assert all("plan" not in record for record in bare.results)


def test_what_a_cache_answers_is_not_solved(tmp_path: Path) -> None:
    """Another folder gets the same plans with their original seconds; a plan that is not certified
    is made again."""
    kept = tmp_path / "cache"
    first = run_batch(suite(), tmp_path / "a", workers=1, cache=kept)
    again = run_batch(suite(), tmp_path / "b", workers=1, cache=kept)
    assert not any(record["cached"] for record in first.results)
    certain = [record["certified_bound"] == record["objective"] for record in first.results]
    assert [record["cached"] for record in again.results] == certain and any(certain)
    for one, other in zip(first.results, again.results, strict=True):
        assert one["objective"] == other["objective"]
        assert not other["cached"] or one["seconds"] == other["seconds"]


def test_a_failing_scenario_stops_nothing_and_is_tried_again(tmp_path: Path) -> None:
    """An impossible point of a sweep does not affect the other answers."""
    mixed = suite(clusters=["1xa10"], sweep={"machines": [2, 1]}, formulations=["greedy"])
    batch = run_batch(mixed, tmp_path, workers=1)
    assert batch.counts == {"failed": 1, "optimal": 1}  # a certificate closes on greedy's plan
    assert run_batch(mixed, tmp_path, workers=1).solved == 1


def test_a_result_says_what_is_certified(tmp_path: Path) -> None:
    """Every plan is certified, unless the suite asks for no certificates."""
    for asked, word in ((True, "certified"), (False, "nothing certified")):
        mine = suite(formulations=["greedy"], certificate=asked)
        for record in run_batch(mine, tmp_path / word, workers=1).results:
            assert (record["certified_bound"] is not None) == asked
            assert word in record["standing"]


def test_progress_is_told(tmp_path: Path) -> None:
    """First what was already there, then every record with its number."""
    told: list[tuple[bool, int, int]] = []

    def note(record: Record | None, done: int, total: int) -> None:
        told.append((record is None, done, total))

    run_batch(suite(), tmp_path, workers=1, on_record=note)
    assert told == [(True, 0, 4)] + [(False, n, 4) for n in (1, 2, 3, 4)]


@pytest.mark.slow
def test_killed_three_times_and_resumed(tmp_path: Path) -> None:
    """Ten scenarios, killed hard at three random times, get the answers of an undisturbed run."""
    ten = suite(seeds=[0, 1, 2, 3, 4], formulations=["cpsat"])
    path = tmp_path / "ten.yaml"
    path.write_text(yaml.safe_dump(ten.to_dict()))
    draw = random.Random()
    for least in sorted(draw.sample(range(9), 3)):
        _run_and_kill(path, tmp_path / "killed", least, draw.random() * 0.05)
    resumed = run_batch(ten, tmp_path / "killed", workers=2)
    whole = run_batch(ten, tmp_path / "whole", workers=2)
    assert _proved(resumed.results) == _proved(whole.results)
    assert len(_proved(whole.results)) == 10
    assert Suite.from_dict(ten.to_dict()) == ten


def _run_and_kill(path: Path, output: Path, least: int, pause: float) -> None:
    """Start the command, and kill it (no handler can run) some time after ``least`` answers."""
    command = [sys.executable, "-m", "milp_planner.cli.main", "batch", str(path), "-o", str(output)]
    process = subprocess.Popen([*command, "--workers", "2"], stdout=subprocess.DEVNULL)
    file = output / FILE
    while process.poll() is None and _lines(file) < least:
        time.sleep(0.01)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.wait()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else -1


def _proved(results: list[Record]) -> dict[str, int]:
    return {r["key"]: r["objective"] for r in results if r["status"] == "optimal"}
