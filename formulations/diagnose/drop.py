"""The fewest tables to leave out so that the rest has a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.diagnose.ask import Asker
from formulations.diagnose.questions import droppable
from formulations.instance import Instance
from formulations.result.outcome import Status


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
