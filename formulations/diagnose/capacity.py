"""The least uniform capacity of one resource at which a plan exists, the others as given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from formulations.check import check
from formulations.diagnose.ask import Asker
from formulations.diagnose.questions import lendable, lift, use_as_cost
from formulations.instance import Instance, Scope
from formulations.instance_file import instance_from_dict, instance_to_dict
from formulations.outcome import Outcome, Status
from formulations.placement import Placement


@dataclass(frozen=True)
class Least:
    """Least uniform capacity of a resource.

    Attributes
    ----------
    resource, scope : str
    least : int or None
        A capacity at every place at which a plan is known to exist; None: none found.
    bound : int or None
        No smaller capacity can do; equals ``least`` when proved.
    impossible : bool
        Proved: no capacity of this resource helps, the other constraints already conflict.
    capacity : tuple of int
        What the places have now.
    """

    resource: str
    scope: str
    least: int | None
    bound: int | None
    impossible: bool
    capacity: tuple[int, ...]

    @property
    def proved(self) -> bool:
        """Whether the answer is exact."""
        return self.impossible or (self.least is not None and self.least == self.bound)

    @property
    def short_by(self) -> int | None:
        """How much the smallest place lacks (0 when it has enough); None when unknown."""
        return None if self.least is None else max(0, self.least - min(self.capacity))


def least_capacity(instance: Instance, resource: str, asker: Asker, share: float = 1.0) -> Least:
    """Solve for the least uniform capacity of a resource.

    A rank resource becomes the objective itself (its use as the cost of ``busiest_rank``); for
    other scopes capacity is lent in powers of two (:mod:`formulations.diagnose.questions`).

    Parameters
    ----------
    instance : Instance
    resource : str
        Name of one of its resources.
    asker : Asker
    share : float
        Part of the asker's remaining time to spend.
    """
    document = instance_to_dict(instance)
    index = [r.name for r in instance.resources].index(resource)
    described = instance.resources[index]
    if described.scope == Scope.RANK:
        _, outcome = asker.ask(use_as_cost(document, resource), share)
        least, bound = outcome.objective, outcome.bound
    else:
        least, bound, outcome = _lend(document, resource, asker, share)
    return Least(
        resource=resource,
        scope=described.scope.value,
        least=least,
        bound=bound,
        impossible=outcome.status == Status.INFEASIBLE,
        capacity=tuple(int(c) for c in described.capacity),
    )


def _lend(
    document: dict[str, Any], resource: str, asker: Asker, share: float
) -> tuple[int | None, int | None, Outcome]:
    free = instance_from_dict(document)
    _, outcome = asker.ask(lift(document, resource), share / 2)
    if outcome.placement is None:
        return None, None, outcome
    most = _fullest(free, outcome.placement, resource)
    _, exact = asker.ask(lendable(document, resource, most), share)
    if exact.objective is None:
        return most, exact.bound, exact if exact.status != Status.INFEASIBLE else outcome
    return min(most, exact.objective), exact.bound, exact


def _fullest(free: Instance, placement: Placement, resource: str) -> int:
    """Largest use of the resource at any place; the plan may ignore its capacity."""
    loads = check(free, placement).loads
    assert loads is not None
    index = [r.name for r in free.resources].index(resource)
    return int(loads.use[index].max())
