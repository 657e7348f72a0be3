"""The fewest tables to leave out; all answers about an instance without a plan in one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from formulations.diagnose.ask import Asker
from formulations.diagnose.capacity import Least, least_capacity
from formulations.diagnose.conflict import Conflict, conflict
from formulations.diagnose.questions import droppable
from formulations.instance import Instance
from formulations.result.outcome import Status
from formulations.settings import Settings


@dataclass(frozen=True)
class Drop:
    """The fewest tables to drop.

    Attributes
    ----------
    tables : tuple of str or None
        A set whose removal is known to suffice; None: none found.
    bound : int or None
        No fewer can do; equals ``len(tables)`` when proved.
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


def fewest_drops(instance: Instance, asker: Asker, share: float = 1.0) -> Drop:
    """Solve for the fewest tables to drop; pinned tables stay.

    Parameters
    ----------
    instance : Instance
    asker : Asker
    share : float
        Part of the asker's remaining time to spend.
    """
    question = droppable(instance)
    outcome = asker.ask(question, share)
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
        One a resource, each with the other resources as they are.
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
    formulation: str = "auto",
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Diagnosis:
    """Answer, for an instance without a plan: how much more, which tables, and why.

    Parameters
    ----------
    instance : Instance
    settings : Settings, optional
        Its time limit covers all questions together.
    formulation : str
        Which to ask; ``auto`` is exact for small questions.
    groups : mapping of str to sequences of str, optional
        Resources whose capacities grow together, by the name of their answer; default: each
        resource on its own.

    Returns
    -------
    Diagnosis
    """
    asker = Asker(settings or Settings(), formulation)
    groups = groups or {r.name: [r.name] for r in instance.resources}
    questions = len(groups) + 2
    capacities = tuple(
        least_capacity(instance, name, asker, 1 / (questions - i), together)
        for i, (name, together) in enumerate(groups.items())
    )
    drop = fewest_drops(instance, asker, 0.5)
    return Diagnosis(capacities, drop, conflict(instance, asker))
