"""All answers about an instance without a plan: which tables and constraints already conflict, the
fewest tables to leave out, and the least capacities.

A smallest conflict is found by deletion filtering (Chinneck & Dravnieks, "Locating minimal
infeasible constraint sets in linear programs", ORSA Journal on Computing 3, 1991): drop what is
not needed for the conflict, halving chunks first so that large instances need few solves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from formulations.capacity.budget import Budget
from formulations.diagnose.capacity import Least, least_capacity
from formulations.diagnose.questions import constraints_of, droppable, lift, only
from formulations.instance import Instance
from formulations.result.outcome import Status
from formulations.settings import Settings

#: Up to this many subsets, all sets of one table fewer are tried for a conflict.
SUBSETS = 200


@dataclass(frozen=True)
class Conflict:
    """Tables and constraints without a plan among themselves.

    Attributes
    ----------
    tables : tuple of str
    constraints : tuple of str
        Resource names, ``fusion``, ``pins``, ``forbidden``, ``moves``.
    irreducible : bool
        Whether leaving out any one of them was proved to leave a plan. False when time ran out:
        the set is then a conflict all the same, but may hold more than is needed.
    smallest : bool
        Whether it was also proved that no fewer tables conflict, whatever the constraints.
    """

    tables: tuple[str, ...]
    constraints: tuple[str, ...]
    irreducible: bool
    smallest: bool = False


def conflict(instance: Instance, budget: Budget) -> Conflict | None:
    """Shrink an infeasible instance to a conflict; None when infeasibility is not proved in time.

    Parameters
    ----------
    instance : Instance
    budget : Budget
        Every step takes at most a fifth of the time it has left.
    """
    if budget.fits(instance, 0.5) is not False:
        return None
    _, part, _ = _needed_constraints(instance, budget)
    tables, sure_tables = _needed_tables(part, budget)
    # A smaller set of tables may need fewer constraints than all of them did.
    constraints, _, sure_constraints = _needed_constraints(only(part, tables), budget)
    irreducible = sure_tables and sure_constraints
    smallest = irreducible and _no_fewer(instance, len(tables), budget)
    return Conflict(tuple(tables), tuple(constraints), irreducible, smallest)


def _no_fewer(instance: Instance, size: int, budget: Budget) -> bool:
    """Whether every set of one table fewer, and so every smaller set, has a plan under all
    constraints."""
    if comb(instance.num_tables, size - 1) > SUBSETS:
        return False
    return all(
        budget.fits(only(instance, fewer), 0.2) is True
        for fewer in combinations(instance.table_names, size - 1)
    )


def _needed_constraints(instance: Instance, budget: Budget) -> tuple[list[str], Instance, bool]:
    sure = True
    needed: list[str] = []
    for name in constraints_of(instance):
        without = lift(instance, name)
        verdict = None if budget.over() else budget.fits(without, 0.2)
        if verdict is False:
            instance = without
        else:
            needed.append(name)
            sure &= verdict is True
    return needed, instance, sure


def _needed_tables(instance: Instance, budget: Budget) -> tuple[list[str], bool]:
    names = list(instance.table_names)
    sure: set[str] = set()
    chunk = max(1, len(names) // 2)
    while True:
        start = 0
        while start < len(names) and not budget.over():
            tried = names[start : start + chunk]
            rest = names[:start] + names[start + chunk :]
            verdict = budget.fits(only(instance, rest), 0.2)
            if verdict is False:
                names = rest
                continue
            if verdict is True and chunk == 1:
                sure.update(tried)
            start += chunk
        if chunk == 1 or budget.over():
            return names, sure.issuperset(names)
        chunk = max(1, chunk // 2)


@dataclass(frozen=True)
class Drop:
    """The fewest tables to drop.

    Attributes
    ----------
    tables : tuple of str or None
        A set whose removal is known to suffice; None: none found.
    bound : int or None
        No fewer suffice; equals ``len(tables)`` when proved.
    impossible : bool
        Proved: dropping tables that are not pinned never suffices.
    """

    tables: tuple[str, ...] | None
    bound: int | None
    impossible: bool

    @property
    def proved(self) -> bool:
        """Whether the number is exact."""
        return self.impossible or (self.tables is not None and len(self.tables) == self.bound)


def fewest_drops(instance: Instance, budget: Budget, share: float = 1.0) -> Drop:
    """Solve for the fewest tables to drop; pinned tables stay.

    Parameters
    ----------
    instance : Instance
    budget : Budget
    share : float
        Part of the budget's remaining time to spend.
    """
    question = droppable(instance)
    outcome = budget.ask(question, share)
    if outcome.placement is None:
        return Drop(None, outcome.bound, outcome.status == Status.INFEASIBLE)
    last = question.table_options[1:] - 1
    dropped = np.flatnonzero(outcome.placement.options == last)
    names = tuple(instance.table_names[int(table)] for table in dropped)
    return Drop(names, outcome.bound, False)


@dataclass(frozen=True)
class Diagnosis:
    """Why nothing fits and what would help.

    Attributes
    ----------
    capacities : tuple of Least
        One for each resource, with the other resources as they are.
    drop : Drop
    conflict : Conflict or None
        None when infeasibility was not proved in the time given.
    """

    capacities: tuple[Least, ...]
    drop: Drop
    conflict: Conflict | None

    def to_dict(self) -> dict[str, Any]:
        """JSON values; None for what is unknown."""
        return {
            "capacities": [
                asdict(c) | {"proved": c.proved, "short_by": c.short_by} for c in self.capacities
            ],
            "drop": asdict(self.drop) | {"proved": self.drop.proved},
            "conflict": None if self.conflict is None else asdict(self.conflict),
        }


def diagnose(
    instance: Instance,
    settings: Settings | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Diagnosis:
    """For an instance without a plan: how much capacity is missing, which tables to drop, and why.

    Parameters
    ----------
    instance : Instance
    settings : Settings, optional
        Its time limit covers all questions together.
    groups : mapping of str to sequences of str, optional
        Resources whose capacities grow together, by the name of their answer; default: each
        resource on its own.

    Returns
    -------
    Diagnosis
    """
    budget = Budget(settings)
    groups = groups or {r.name: [r.name] for r in instance.resources}
    questions = len(groups) + 2
    capacities = tuple(
        least_capacity(instance, name, budget, 1 / (questions - i), together)
        for i, (name, together) in enumerate(groups.items())
    )
    drop = fewest_drops(instance, budget, 0.5)
    return Diagnosis(capacities, drop, conflict(instance, budget))
