"""Scenarios of the same inputs share plans, so that none is beaten by another one's plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from milp_planner.features.batch.curves import rows_of
from scenarios.batch import runner
from scenarios.batch.execute import execute
from scenarios.batch.local import Task
from scenarios.batch.placements import heard, told
from scenarios.batch.runner import run_batch
from scenarios.batch.scenario import expand
from scenarios.batch.sharing import Plans
from scenarios.batch.store import Record
from tests.scenarios.batch.small import suite

KINDS = ("busiest_rank", "step_time")


def here(tasks: Sequence[Task], workers: int, started: Callable[[Task], Task]) -> Iterator[Record]:
    """Solve in this process; busiest_rank's result is doubled if it had no plan to start from."""
    for key, scenario in map(started, list(tasks)):
        record = execute(scenario, key)
        if scenario.objective == "busiest_rank" and not scenario.hint:
            record["objective"] *= 2
            record["objectives"] = {k: 2 * v for k, v in record["objectives"].items()}
        yield record


def beaten(results: Sequence[Record]) -> list[Record]:
    """Records whose objective is above that of another record's plan for the same inputs."""
    return [
        mine
        for mine in results
        for other in results
        if (mine["model"], mine["cluster"], mine["axes"])
        == (other["model"], other["cluster"], other["axes"])
        and other["objectives"][mine["objective_kind"]] < mine["objective"]
    ]


def test_no_row_is_beaten_by_its_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """busiest_rank is solved first, and badly, so it is solved again from step_time's plan; a
    second call finds nothing left to do."""
    monkeypatch.setattr(runner, "run_local", here)
    asked = suite(objectives=list(KINDS), formulations=["auto"])
    batch = run_batch(asked, tmp_path, workers=1)
    assert beaten(batch.results) == [] and batch.solved == len(batch.results)
    again = run_batch(asked, tmp_path, workers=1)
    assert again.solved == 0 and again.results == batch.results
    assert all("placement" not in record for record in batch.results)


def test_a_stored_plan_beats_a_stored_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans stored in the folder also count when a batch is continued."""
    monkeypatch.setattr(runner, "run_local", here)
    monkeypatch.setattr(runner, "AGAIN", 0)
    asked = suite(objectives=list(KINDS), formulations=["auto"])
    assert beaten(run_batch(asked, tmp_path, workers=1, plans=True).results)
    monkeypatch.setattr(runner, "AGAIN", 3)
    assert beaten(run_batch(asked, tmp_path, workers=1, plans=True).results) == []


def test_who_takes_whose_plans() -> None:
    """auto takes all plans for another objective, cpsat its own, greedy none; of less memory, each
    also takes its own for the same objective."""
    asked = suite(objectives=list(KINDS), formulations=["auto", "cpsat", "greedy"])
    tasks = [(scenario.key(), scenario) for scenario in expand(asked)]
    plans = Plans(tasks)
    key, first = next(t for t in tasks if (t[1].formulation, t[1].objective) == ("cpsat", KINDS[0]))
    plans.take({"key": key, "objectives": {kind: 7 for kind in KINDS}}, "a plan")
    took = [
        (s.formulation, s.objective, s.axes == first.axes and s.cluster == first.cluster)
        for _, s in map(plans.started, tasks)
        if s.hint
    ]
    assert sorted(took) == [
        ("auto", KINDS[1], False), ("auto", KINDS[1], True), ("cpsat", KINDS[0], False),
        ("cpsat", KINDS[1], False), ("cpsat", KINDS[1], True),
    ]  # fmt: skip


def badly(answer: dict[str, Any]) -> Callable[..., Iterator[Record]]:
    """An engine that begins with the last scenario, and answers so for 8 GiB without a hint."""

    def run(
        tasks: Sequence[Task], workers: int, started: Callable[[Task], Task]
    ) -> Iterator[Record]:
        for key, scenario in map(started, reversed(list(tasks))):
            record = execute(scenario, key)
            large = dict(scenario.axes)["hbm"] == 2**33
            yield {**record, **answer} if large and not scenario.hint else record

    return run


@pytest.mark.parametrize(("status", "objective"), [("feasible", 10**15), ("unknown", None)])
def test_more_memory_is_never_dearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, objective: int | None
) -> None:
    """The larger memory, solved first and badly, is solved again from the plan for the smaller one;
    its bound is in turn that of the smaller."""
    answer = {"status": status, "objective": objective, "objectives": {}}
    monkeypatch.setattr(runner, "run_local", badly(answer))
    asked = suite(formulations=["cpsat"], objectives=["step_time"])
    small, large = run_batch(asked, tmp_path, workers=1).results
    assert small["objective"] >= large["objective"] and large["status"] == "optimal"
    assert small["shape"] == large["shape"]
    worse = rows_of([small, {**large, **answer}])
    assert worse[1].best == small["objective"]
    open_ones = rows_of([{**small, "bound": None, "certified_bound": None}, large])
    assert open_ones[0].best_certified == large["certified_bound"]


def test_a_plan_travels_as_text() -> None:
    """Options and ranks come back unchanged, and the scenario's key does not change."""
    from dataclasses import replace

    from tests.milp_planner.features.example import placement

    plan = placement()
    back = heard(told(plan))
    assert back.options.tolist() == plan.options.tolist()
    tables = range(len(plan.options))
    assert [back.to_lists(t) for t in tables] == [plan.to_lists(t) for t in tables]
    scenario = expand(suite())[0]
    assert replace(scenario, hint=told(plan)).key() == scenario.key()
