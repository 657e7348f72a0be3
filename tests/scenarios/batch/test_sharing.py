"""Scenarios of the same inputs share what they find, so that none is beaten by another one."""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Outcome, Settings, StoppedBy, solve
from formulations.result.outcome import BoundSource, found, infeasible, nothing
from milp_planner import read_plan, verify
from milp_planner.features.plan import call as planning
from scenarios.batch import runner
from scenarios.batch.curves import rows_of
from scenarios.batch.local import Task
from scenarios.batch.neighbours import leaves_as_much
from scenarios.batch.runner import run_batch
from scenarios.batch.scenario import expand
from scenarios.batch.sharing import Findings
from scenarios.batch.store import Record
from tests.scenarios.batch.small import here, suite

KINDS = ("busiest_rank", "step_time")


Run = Callable[[Sequence[Task], int, Callable[[Task], Task]], Iterator[Record]]


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


SEEN: dict[str, Instance] = {}


@lru_cache(maxsize=64)
def solved(fingerprint: str, formulation: str, certificate: bool) -> Outcome:
    """The outcome of an instance that :class:`Poor` has seen."""
    asked = Settings(workers=1, polish=False, certificate=certificate)
    return solve(SEEN[fingerprint], formulation, asked).with_(trace=())


class Poor:
    """A solver that finds nothing, a bad plan, a weak bound or the optimum, as chance has it, and
    never looks at the plan that it is given to start from."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def __call__(self, instance: Instance, name: str, settings: Settings) -> Outcome:
        SEEN[instance.fingerprint] = instance
        best, kind = solved(instance.fingerprint, "cpsat", True), self._draw.randrange(5)
        if kind == 0:
            return nothing(name, StoppedBy.TIME_LIMIT)
        if best.placement is None:
            return best if kind > 2 else infeasible(name, BoundSource(name, exact=True))
        if kind == 1:
            return best
        if kind == 2:  # a solver's word, without a certificate
            return found(instance, name, best.placement, StoppedBy.TIME_LIMIT, best.objective,
                         BoundSource(name, exact=True))  # fmt: skip
        return solved(instance.fingerprint, "greedy", kind == 3).with_(formulation=name)


class Interrupted:
    """Ctrl-C after so many records of a run."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, record: Record | None, *_: int) -> None:
        self._left -= record is not None
        if self._left < 0:
            raise KeyboardInterrupt


def shuffled(seed: int) -> Run:
    """:func:`here`, in any order."""

    def run(*given: Any) -> Iterator[Record]:
        tasks, workers, started = given
        return here(random.Random(seed).sample(tasks, len(tasks)), workers, started)

    return run


def not_monotone(results: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Pairs of results, the second with as much memory as the first, that contradict this."""
    return [
        (less, more)
        for less, more in itertools.permutations(results, 2)
        if leaves_as_much(more["axes"], less["axes"])
        and less["shape"] == more["shape"]
        and (
            value(less, "objective") < value(more, "objective")
            or any(
                value(less, bound) < min(value(more, bound), value(less, "objective"))
                for bound in ("bound", "certified_bound")
            )
        )
    ]


def value(record: Record, field: str) -> float:
    """An objective or a bound; infinite where there is no plan, or for an objective, none known."""
    if record["status"] == "infeasible":
        return inf
    known = record[field]
    return (inf if field == "objective" else 0) if known is None else known


LIMITS = [{"time_limit": 60}, {"work_limit": 1e9}]


@settings(max_examples=12, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 2**20), min_size=3, max_size=3),
    stops=st.lists(st.integers(0, 12), max_size=3),
    workers=st.integers(1, 3),
    limit=st.sampled_from(LIMITS),
)
def test_a_suite_is_monotone(
    seeds: list[int], stops: list[int], workers: int, limit: dict[str, Any]
) -> None:
    """Whatever the solver finds, the order, the interruptions and the number of workers, more
    memory is never dearer and less memory never less proved; every plan passes ``verify``."""
    memory = {"ranks_per_machine": 2, "hbm": ["1MiB", "16MiB", "64MiB"], "ddr": ["32MiB", "1GiB"]}
    asked = suite(sweep=memory, formulations=["cpsat"], objectives=["step_time"], **limit)
    with (
        TemporaryDirectory() as folder,
        patch.object(planning, "solve", Poor(seeds[0])),
        patch.object(runner, "run_local", shuffled(seeds[1])),
    ):
        for stop in stops:
            run_batch(asked, folder, workers=workers, plans=True, on_record=Interrupted(stop))
        with patch.object(runner, "run_local", shuffled(seeds[2])):
            batch = run_batch(asked, folder, workers=workers, plans=True)
        assert len(batch.results) == 6 and not not_monotone(batch.results)
        for record in (each for each in batch.results if "plan" in each):
            assert not verify(read_plan(Path(folder) / record["plan"])).refuted
        again = run_batch(asked, folder, workers=workers)
        assert again.solved == 0 and again.results == batch.results


def test_counted_results_do_not_depend_on_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With counted work nothing is solved twice, so every order gives the same objectives, bounds
    and plans, however often it is interrupted."""
    asked = suite(work_limit=1e9, sweep={"ranks_per_machine": 2, "hbm": ["16MiB", "20MiB", "8GiB"]})
    found_in = []
    for name, seed, stops in (("a", 1, ()), ("b", 2, (0, 1, 1)), ("c", 3, (4,))):
        solves: list[str] = []

        def by_key(
            instance: Instance, name: str, settings: Settings, mine: Any = solves
        ) -> Outcome:
            mine.append(instance.fingerprint + name)
            return Poor(int(instance.fingerprint[:8], 16))(instance, name, settings)

        monkeypatch.setattr(planning, "solve", by_key)
        monkeypatch.setattr(runner, "run_local", shuffled(seed))
        for stop in stops:
            run_batch(asked, tmp_path / name, workers=1, on_record=Interrupted(stop))
        batch = run_batch(asked, tmp_path / name, workers=1)
        found_in.append([(r["objective"], r["bound"], r["modes"]) for r in batch.results])
    assert found_in[0] == found_in[1] == found_in[2]


def test_a_scenario_that_takes_a_plan_is_solved_again_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worse plan, found first, is replaced, and the search then starts from the better one; a
    second call has nothing left to do."""
    hints: list[bool] = []

    def at_first_badly(instance: Instance, name: str, settings: Settings) -> Outcome:
        hints.append(settings.known is not None and settings.known(instance).hint is not None)
        if instance.objective.value == "busiest_rank" and not hints[-1]:
            return solve(instance, "greedy", Settings(workers=1, certificate=False))
        return solve(instance, name, settings)

    monkeypatch.setattr(planning, "solve", at_first_badly)
    asked = suite(objectives=list(KINDS), formulations=["auto"])
    batch = run_batch(asked, tmp_path, workers=1)
    assert beaten(batch.results) == [] and batch.solved == len(batch.results) < len(hints)
    again = run_batch(asked, tmp_path, workers=1)
    assert again.solved == 0 and again.results == batch.results
    assert all("outcome" not in record for record in batch.results)


def test_who_takes_whose_plans(tmp_path: Path) -> None:
    """auto takes all plans for another objective, cpsat its own, greedy none; of less memory, each
    also takes its own for the same objective."""
    asked = suite(objectives=list(KINDS), formulations=["auto", "cpsat", "greedy"])
    tasks = [(scenario.key(), scenario) for scenario in expand(asked)]
    key, first = next(
        t for t in tasks if (t[1].asked.formulation, t[1].asked.objective) == ("cpsat", KINDS[0])
    )
    known = Findings(tasks, tmp_path, counted=False)
    costs = {"objectives": {kind: 7 for kind in KINDS}, "objective": 7, "status": "feasible"}
    known.take({"key": key, **costs}, b"what it found")
    took = [
        (
            s.asked.formulation,
            s.asked.objective,
            s.axes == first.axes and s.cluster == first.cluster,
        )
        for _, s in map(known.started, tasks)
        if s.shared is not None and s.shared.plan
    ]
    assert sorted(took) == [
        ("auto", KINDS[1], False), ("auto", KINDS[1], True), ("cpsat", KINDS[0], False),
        ("cpsat", KINDS[1], False), ("cpsat", KINDS[1], True),
    ]  # fmt: skip


def test_the_page_joins_bounds_too(tmp_path: Path) -> None:
    """In results not shared, a row's best is that of less memory, its best bound that of more."""
    asked = suite(formulations=["cpsat"], objectives=["step_time"])
    small, large = run_batch(asked, tmp_path, workers=1).results
    assert small["shape"] == large["shape"]
    worse = rows_of([small, {**large, "status": "unknown", "objective": None, "objectives": {}}])
    assert worse[1].best == small["objective"]
    open_ones = rows_of([{**small, "bound": None, "certified_bound": None}, large])
    assert open_ones[0].best_certified == large["certified_bound"]
