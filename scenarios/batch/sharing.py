"""Scenarios share plans: those of the same inputs for different objectives, those of less memory.

A scenario starts from the plan that is best for its own objective. If a better one appears after it
was solved, it is solved again; so no point of a sweep is dearer than one with less memory.
Scenarios with the same objective that differ in seed, settings or formulation are compared with
each other, so they share nothing. ``auto`` takes any formulation's plans for other objectives,
other proving formulations only their own, and baselines none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from formulations import registry
from formulations.capacity.curve import Known
from milp_planner.features.batch.neighbours import leaves_as_much, without_memory
from scenarios.batch.local import Task
from scenarios.batch.scenario import Scenario
from scenarios.batch.store import Record


class Plans:
    """Plans of a batch by their inputs.

    Parameters
    ----------
    tasks : iterable of (key, Scenario)
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._scenarios = dict(tasks)
        self._known: dict[str, Known[_Point, str]] = {}
        self._shapes: dict[str, str | None] = {}

    def take(self, record: Record, placement: str | None) -> None:
        """Add a record and its plan."""
        key, shape = record["key"], record.get("shape")
        scenario = self._scenarios.get(key)
        if scenario is None:
            return
        self._shapes[key] = shape
        known = self._known.setdefault(_family(scenario), Known(_takes))
        for objective, value in (record.get("objectives") or {}).items():
            if placement is not None:
                known.take_plan(_Point(scenario, objective, shape), value, placement)

    def started(self, task: Task) -> Task:
        """The task with the best plan that it may start from."""
        key, scenario = task
        best = self._best(key)
        return task if best is None else (key, replace(scenario, hint=best[1]))

    def shared(self, key: str) -> bool:
        """Whether another scenario may take this one's plans."""
        mine = self._scenarios[key]
        return any(
            _takes(_Point(other, other.objective), _Point(mine, other.objective))
            for other in self._scenarios.values()
        )

    def beaten(self, records: Mapping[str, Record]) -> Iterator[Task]:
        """Tasks for which a plan that they may take is better than their own record."""
        for key, scenario in self._scenarios.items():
            best, record = self._best(key), records.get(key)
            if best is None or record is None or record["status"] not in _OPEN:
                continue
            value = record.get("objective")
            if value is None or best[0] < value:
                yield key, scenario

    def _best(self, key: str) -> tuple[int, str] | None:
        """The lowest objective of the plans that a scenario may take, and its plan."""
        mine = self._scenarios[key]
        known = self._known.get(_family(mine))
        point = _Point(mine, mine.objective, self._shapes.get(key))
        return None if known is None else known.plan(point)


class _Point(NamedTuple):
    """A scenario, one of the objectives of its plan, and the shape of its instance if known."""

    scenario: Scenario
    objective: str
    shape: str | None = None


_OPEN = ("unknown", "feasible", "optimal")
"""Statuses of scenarios that may be solved again."""


def _takes(point: _Point, source: _Point) -> bool:
    """Whether a scenario may take another's plan, as one for an objective."""
    mine, other = point.scenario, source.scenario
    if registry.get(mine.formulation).proves not in ("optimum", "optimum or gap"):
        return False
    if point.objective != source.objective or _family(mine) != _family(other):
        return False
    if not leaves_as_much(dict(mine.axes), dict(other.axes)):
        return False
    if mine.axes != other.axes and point.shape not in (None, source.shape):
        return False
    if mine.objective != other.objective:
        return mine.formulation in ("auto", other.formulation)
    return mine.axes != other.axes and replace(other, axes=mine.axes) == mine


def _family(scenario: Scenario) -> str:
    """A key that is equal for scenarios with the same model, cluster and constraints, and any
    memory."""
    axes = without_memory(dict(scenario.axes))
    parts = (scenario.model, scenario.cluster, scenario.folder, axes, scenario.only_tables,
             scenario.hot_ids)  # fmt: skip
    return repr(parts)
