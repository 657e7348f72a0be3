"""Scenarios share what they found: plans of the same inputs for different objectives, and plans,
bounds and certificates of more and of less memory.

What is found is kept in the folder of the results. A scenario starts from what is known when it
starts; when all have a result, each takes the best that is known for it, and one that takes a plan
is solved once more from it. So no point of a sweep is
dearer, or less proved, than one from which that carries over, whatever their order, interruptions
and number of workers. Scenarios with the same objective that differ in seed, settings or
formulation are compared with each other, so they share nothing. ``auto`` takes any formulation's
plans for other objectives, other proving formulations only their own, and baselines none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from formulations import registry
from milp_planner.features.plan.cache import Entries
from scenarios.batch.evidence import Shared
from scenarios.batch.local import Task
from scenarios.batch.neighbours import leaves_as_much, without_memory
from scenarios.batch.scenario import Scenario
from scenarios.batch.store import Record

FOLDER = "outcomes"
"""Where outcomes are kept, beside the results."""
_OPEN = ("unknown", "feasible", "optimal")
"""Statuses of scenarios that may take what others found."""
_IMPOSSIBLE = 2**63
"""Stands for the bound of a scenario without a plan."""


class _Best(NamedTuple):
    """The keys of the scenarios that help one most, and what they have, by its field in
    :class:`~scenarios.batch.evidence.Shared`."""

    plan: tuple[int, str] | None
    proved: tuple[int, str] | None
    certified: tuple[int, str] | None
    below: tuple[int, str] | None


_NOTHING = _Best(None, None, None, None)


class Findings:
    """What the scenarios of a batch found, by their inputs.

    Parameters
    ----------
    tasks : iterable of (key, Scenario)
    folder : Path
        Folder of the results.
    counted : bool
        Whether solves are limited by counted work: none is then made again, and none starts from
        another, as results would depend on which scenario finishes first.
    """

    def __init__(self, tasks: Iterable[Task], folder: Path, counted: bool) -> None:
        self._scenarios, self._counted = dict(tasks), counted
        self._again: set[str] = set(self._scenarios) if counted else set()
        self._alike: dict[str, list[str]] = defaultdict(list)
        for key, scenario in self._scenarios.items():
            self._alike[_family(scenario)].append(key)
        self._records: dict[str, Record] = {}
        self._tried: set[tuple[str, _Best]] = set()
        self._entries = Entries(folder / FOLDER, ".outcome", most=2**40)

    def take(self, record: Record, outcome: bytes | None = None) -> None:
        """Add a record, and keep its outcome where there is one to keep."""
        key = record["key"]
        if outcome is not None:
            self._entries.write(key, outcome)
        if key in self._entries:
            self._records[key] = record

    def _shares(self, key: str) -> bool:
        """Whether another scenario may take what this one found."""
        mine = self._scenarios[key]
        return any(
            _takes(self._scenarios[other], mine) or _proves(mine, self._scenarios[other])
            for other in self._alike[_family(mine)]
        )

    def started(self, task: Task) -> Task:
        """The task with what it may start from."""
        if not self._shares(task[0]):
            return task
        return self._with(task, _NOTHING if self._counted else self._best(task[0]))

    def behind(self) -> Iterator[Task]:
        """Tasks for which a plan or a bound is known that is better than their own, with both."""
        for key, scenario in self._scenarios.items():
            record = self._records.get(key)
            if record is None or record["status"] not in _OPEN:
                continue
            best = self._best(key)
            if _is_behind(record, best) and (key, best) not in self._tried:
                self._tried.add((key, best))
                own = self._entries.read(key) or b""
                yield self._with((key, scenario), best, own, key not in self._again)
                self._again.add(key)

    def _with(self, task: Task, best: _Best, own: bytes = b"", again: bool = False) -> Task:
        key, scenario = task
        found = (b"" if at is None else self._entries.read(at[1]) or b"" for at in best)
        return key, replace(scenario, shared=Shared(own, again, *found))

    def _best(self, key: str) -> _Best:
        mine, record = self._scenarios[key], self._records.get(key, {})
        others = [
            (other, self._scenarios[other], self._records[other])
            for other in self._alike[_family(mine)]
            if other != key and other in self._records
        ]
        alike = [each for each in others if record.get("shape") in (None, each[2].get("shape"))]
        plans = [
            (found["objectives"][mine.asked.objective], other)
            for other, theirs, found in others
            if _takes(mine, theirs) and mine.asked.objective in (found.get("objectives") or {})
        ]
        above = [(found, o) for o, theirs, found in alike if _proves(theirs, mine)]
        below = [(_certified(found), o) for o, theirs, found in alike if _proves(mine, theirs)]
        proved, certified = (
            max(((bound(found), o) for found, o in above if bound(found)), key=_value, default=None)
            for bound in (_proved, _certified)
        )
        nearest = min((b for b in below if 0 < b[0] < _IMPOSSIBLE), key=_value, default=None)
        return _Best(min(plans, key=_value, default=None), proved, certified, nearest)


def _value(each: tuple[int, str]) -> int:
    return each[0]


def _proved(record: Record) -> int:
    """The best bound that a record proves in integers; 0 if none."""
    exact = str(record.get("bound_source")).endswith(", exact")
    return max((record.get("bound") or 0) if exact else 0, _certified(record))


def _certified(record: Record) -> int:
    """The bound that a record certifies; 0 if none."""
    if record["status"] == "infeasible":
        return _IMPOSSIBLE
    return record.get("certified_bound") or 0


def _is_behind(record: Record, best: _Best) -> bool:
    """Whether something better than what a record has is known."""
    objective = record.get("objective")
    if best.plan is not None and (objective is None or best.plan[0] < objective):
        return True
    known = ((_proved, best.proved), (_certified, best.certified))
    most = _IMPOSSIBLE if objective is None else objective
    return any(at is not None and bound(record) < min(at[0], most) for bound, at in known)


def _takes(mine: Scenario, other: Scenario) -> bool:
    """Whether a plan of another scenario may be one here, at its cost for this objective."""
    proving = registry.get(mine.asked.formulation).proves in ("optimum", "optimum or gap")
    if not proving or not leaves_as_much(dict(mine.axes), dict(other.axes)):
        return False
    if mine.asked.objective != other.asked.objective:
        return mine.asked.formulation in ("auto", other.asked.formulation)
    return mine.axes != other.axes and replace(other, axes=mine.axes) == mine


def _proves(other: Scenario, mine: Scenario) -> bool:
    """Whether a bound of another scenario is one here."""
    return other.asked.objective == mine.asked.objective and _takes(other, mine)


def _family(scenario: Scenario) -> str:
    """A key that is equal for scenarios with the same model, cluster and constraints, and any
    memory."""
    axes: Any = without_memory(dict(scenario.axes))
    parts = (scenario.model, scenario.cluster, scenario.folder, axes, scenario.only_tables,
             scenario.hot_ids)  # fmt: skip
    return repr(parts)
