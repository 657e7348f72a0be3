"""Scenarios with the same inputs share plans that were made for different objectives.

A scenario starts from the plan that is best for its own objective. If a better one appears after it
was solved, it is solved again. Scenarios with the same objective that differ in seed, settings or
formulation are compared with each other, so they share nothing. ``auto`` takes any formulation's
plans, other proving formulations only their own, and baselines none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from formulations import registry
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
        self._known: dict[str, list[tuple[Scenario, Mapping[str, int], str]]] = {}

    def take(self, record: Record, placement: str | None) -> None:
        """Add the plan of a record."""
        scenario = self._scenarios.get(record["key"])
        if scenario is not None and placement is not None and record.get("objectives"):
            mine = self._known.setdefault(_inputs(scenario), [])
            mine.append((scenario, record["objectives"], placement))

    def started(self, task: Task) -> Task:
        """The task with the best plan that it may start from."""
        key, scenario = task
        best = self._best(scenario)
        return task if best is None else (key, replace(scenario, hint=best[1]))

    def shared(self, key: str) -> bool:
        """Whether another scenario with this key has a different objective."""
        mine = self._scenarios[key]
        return any(
            _inputs(other) == _inputs(mine) and other.objective != mine.objective
            for other in self._scenarios.values()
        )

    def beaten(self, records: Mapping[str, Record]) -> Iterator[Task]:
        """Tasks for which a plan that they may take is better than their own record."""
        for key, scenario in self._scenarios.items():
            best, record = self._best(scenario), records.get(key)
            value = None if record is None else record.get("objective")
            if best is not None and value is not None and best[0] < value:
                yield key, scenario

    def _best(self, scenario: Scenario) -> tuple[int, str] | None:
        """The lowest objective of the plans that a scenario may take, and its plan."""
        if registry.get(scenario.formulation).proves not in ("optimum", "optimum or gap"):
            return None
        found = [
            (values[scenario.objective], placement)
            for other, values, placement in self._known.get(_inputs(scenario), ())
            if other.objective != scenario.objective
            and scenario.formulation in ("auto", other.formulation)
        ]
        return min(found, default=None)


def _inputs(scenario: Scenario) -> str:
    """A key that is equal for scenarios with the same model, cluster and constraints."""
    parts = (scenario.model, scenario.cluster, scenario.folder, scenario.axes, scenario.only_tables,
             scenario.hot_ids)  # fmt: skip
    return repr(parts)
