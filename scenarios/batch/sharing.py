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
        self._known: dict[str, list[_Known]] = {}
        self._shapes: dict[str, str | None] = {}

    def take(self, record: Record, placement: str | None) -> None:
        """Add a record and its plan."""
        scenario = self._scenarios.get(record["key"])
        if scenario is None:
            return
        self._shapes[record["key"]] = record.get("shape")
        if placement is not None and record.get("objectives"):
            known = _Known(scenario, record["objectives"], placement, record.get("shape"))
            self._known.setdefault(_family(scenario), []).append(known)

    def started(self, task: Task) -> Task:
        """The task with the best plan that it may start from."""
        key, scenario = task
        best = self._best(key)
        return task if best is None else (key, replace(scenario, hint=best[1]))

    def shared(self, key: str) -> bool:
        """Whether another scenario may take this one's plans."""
        mine = self._scenarios[key]
        return any(_takes(other, mine) for other in self._scenarios.values())

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
        scenario, shape = self._scenarios[key], self._shapes.get(key)
        found = [
            (known.objectives[scenario.objective], known.placement)
            for known in self._known.get(_family(scenario), ())
            if _takes(scenario, known.scenario)
            and (known.scenario.axes == scenario.axes or shape in (None, known.shape))
        ]
        return min(found, default=None)


class _Known(NamedTuple):
    """A plan and the scenario it is of."""

    scenario: Scenario
    objectives: Mapping[str, int]
    placement: str
    shape: str | None


_OPEN = ("unknown", "feasible", "optimal")
"""Statuses of scenarios that may be solved again."""


def _takes(mine: Scenario, other: Scenario) -> bool:
    """Whether a scenario may take another's plans."""
    if registry.get(mine.formulation).proves not in ("optimum", "optimum or gap"):
        return False
    if _family(mine) != _family(other):
        return False
    if not leaves_as_much(dict(mine.axes), dict(other.axes)):
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
