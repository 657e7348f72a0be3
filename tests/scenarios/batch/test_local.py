"""Processes of this machine: each answers only for itself."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from scenarios.batch import local
from scenarios.batch.local import run_local
from scenarios.batch.scenario import expand
from tests.scenarios.batch.small import suite

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
