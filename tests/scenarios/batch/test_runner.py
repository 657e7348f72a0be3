"""A suite run into a folder: resumed, interrupted, partly failing. Processes of this machine: each
answers only for itself.

One scenario solved: its record has the solve's result, and a failure is a record, too.
"""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from formulations import Block, InstanceBuilder, Placement, Shard, Where, solve
from formulations.errors import UnsupportedInstance
from formulations.result.outcome import Outcome, Status, StoppedBy
from milp_planner import plan, read_plan
from milp_planner.features.plan import call as planning
from milp_planner.features.plan.one_ratio import ruled
from milp_planner.plans.compile import compile_for
from scenarios.batch import execute as module
from scenarios.batch import local
from scenarios.batch.evidence import Shared, before, written
from scenarios.batch.execute import execute, headroom
from scenarios.batch.local import run_local
from scenarios.batch.query import connect
from scenarios.batch.runner import run_batch
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.store import FILE, Record, Store
from scenarios.batch.suite import Suite
from tests.scenarios.batch.small import suite


def test_a_second_call_solves_nothing(tmp_path: Path) -> None:
    """Results are found by their keys, whatever else is in the folder. Progress tells first what
    was already there, then every record with its number. By default no plan is kept."""
    told: list[tuple[bool, int, int]] = []

    def note(record: Record | None, done: int, total: int) -> None:
        told.append((record is None, done, total))

    with Store(tmp_path) as store:
        store.append({"key": "of another suite", "status": "optimal"})
    first = run_batch(suite(), tmp_path, workers=1, on_record=note)
    assert told == [(True, 0, 4)] + [(False, n, 4) for n in (1, 2, 3, 4)]
    again = run_batch(suite(), tmp_path, workers=1)
    assert (first.solved, again.solved) == (4, 0)
    assert first.results == again.results and len(first.results) == 4
    assert {r["suite"] for r in first.results} == {"small"}
    assert not (tmp_path / "plans").exists()
    assert all("plan" not in record for record in first.results)


def test_plans_are_kept_where_asked(tmp_path: Path) -> None:
    """Each plan is a plan.json of its own, named by its record."""
    batch = run_batch(suite(), tmp_path / "kept", workers=1, plans=True)
    for record in batch.results:
        plan = read_plan(tmp_path / "kept" / record["plan"])
        assert plan.outcome.objective == record["objective"]
        assert plan.outcome.formulation == record["formulation"]
    names = [row["plan"] for row in connect(tmp_path / "kept").execute("select plan from results")]
    assert names == [record["plan"] for record in batch.results]


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


TASKS = [(s.key(), s) for s in expand(suite(formulations=["greedy"], seeds=[0, 1]))]


def test_every_task_is_answered_once() -> None:
    """There may be more processes than tasks, or no tasks."""
    assert {r["key"] for r in run_local(TASKS, 2)} == {key for key, _ in TASKS}
    assert list(run_local([], 2)) == []


def test_a_process_that_dies_fails_its_own_scenario() -> None:
    """If the kernel kills a process for its memory, one scenario fails; the rest is solved."""
    answers = run_local(TASKS, 1)
    records = [next(answers)]
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)
    records += answers
    assert [r["status"] == "failed" for r in records] == [False, True, False, False]
    assert records[1]["error"]["type"] == "LostProcess"
    assert {r["key"] for r in records} == {key for key, _ in TASKS}


def test_a_process_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that ignores its limit delays only its own scenario."""
    monkeypatch.setattr(local, "PATIENCE", 0)
    monkeypatch.setattr(local, "GRACE", 0.0)
    monkeypatch.setattr(local, "_TICK", 0.0)  # checked at once, when no answer can be there yet
    records = list(run_local(TASKS[:2], 1))
    assert [r["error"]["type"] for r in records] == ["LostProcess"] * 2
    assert "no answer" in records[0]["error"]["message"]


def test_leaving_early_ends_the_processes() -> None:
    """If the caller stops asking, no process keeps running."""
    answers = run_local(TASKS, 1)
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


EXACT = next(s for s in expand(suite()) if s.asked.formulation == "cpsat")


def _execute(scenario: Scenario) -> dict[str, object]:
    record = execute(scenario, scenario.key())
    json.dumps(record, allow_nan=False)
    return record


def test_the_record_is_the_outcome() -> None:
    """It has the same Instance, status, objective and bound as a solve by hand."""
    record = _execute(EXACT)
    instance = ruled(compile_for(*EXACT.inputs(), EXACT.asked.objective))
    outcome = solve(instance, "cpsat", EXACT.settings())
    assert record["error"] is None and record["status"] == "optimal"
    assert record["instance"] == instance.fingerprint
    assert (record["objective"], record["bound"]) == (outcome.objective, outcome.bound)
    assert record["axes"] == {"hbm": 2**25, "ranks_per_machine": 2}
    assert record["settings"]["workers"] == 1  # type: ignore[index]


def test_what_was_found_before_is_known_again() -> None:
    """Also if the question had rules of shared caches; not on other inputs."""
    (model, place), kind = EXACT.inputs(), EXACT.asked.objective
    found = plan(model, place, formulation="cpsat", objective=kind, settings=EXACT.settings())
    shared = Shared(own=written(found.instance, found.outcome))
    again = before(compile_for(model, place, kind), shared)
    assert found.outcome.detail["one_ratio"] and again is not None
    assert again.objective == found.outcome.objective
    assert before(compile_for(model, place, "total"), shared) is None
    assert before(compile_for(model, place, kind), Shared()) is None


def test_a_failure_is_a_record() -> None:
    """Missing inputs are reported, with the traceback for debugging."""
    bad = replace(EXACT, cluster="1xa10", axes=(("machines", 2),))
    record = _execute(bad)
    assert record["status"] == "failed"
    assert record["error"]["type"] == "BadInput"  # type: ignore[index]
    assert "interconnect" in record["error"]["message"]  # type: ignore[index]


def test_another_key_is_refused() -> None:
    """A machine with other files or versions must not answer under this key."""
    record = execute(EXACT, "0" * 64)
    assert (record["status"], record["key"]) == ("failed", "0" * 64)


def test_a_formulation_that_does_not_cover_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is not a failure, since trying again would not change it."""

    def refuse(*_: object) -> None:
        raise UnsupportedInstance("three memories")

    monkeypatch.setattr(planning, "solve", refuse)
    monkeypatch.setattr(module, "_warm_up", lambda _: None)
    record = _execute(EXACT)
    assert record["status"] == "not_covered"
    assert record["error"]["message"] == "three memories"  # type: ignore[index]


def test_headroom_by_hand() -> None:
    """The fullest place counts; a resource without capacity has no headroom."""
    builder = InstanceBuilder(
        [[0, 1]], ["p"], [("hbm", "rank", [100, 50]), ("ddr", "machine", 10), ("no", "rank", 0)]
    )
    for name, use in (("a", {"hbm": 30, "ddr": 1}), ("b", {"hbm": 30, "ddr": 2})):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard(use=use, cost=[1])])])
    instance = builder.build()
    placed = Placement(np.array([0, 1]), [[np.array([0])], [np.array([1])]])
    outcome = Outcome(Status.FEASIBLE, StoppedBy.EXHAUSTED, "x", placement=placed)
    found = headroom(instance, outcome)
    assert found == pytest.approx({"hbm": 0.4, "ddr": 0.7})
    assert headroom(instance, outcome.with_(placement=None)) == {}
