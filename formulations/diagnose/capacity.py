"""The least uniform capacity of one resource at which a plan exists, the others as given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from formulations.auto import placement_variables
from formulations.check import check
from formulations.diagnose.ask import EXACT_ALONE, Asker
from formulations.diagnose.questions import lendable, use_as_cost, with_capacity
from formulations.instance import Instance, Scope
from formulations.instance_file import instance_to_dict
from formulations.outcome import Status
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


def least_capacity(
    instance: Instance,
    resource: str,
    asker: Asker,
    share: float = 1.0,
    together: Sequence[str] = (),
) -> Least:
    """Solve for the least uniform capacity of a resource.

    First its use becomes the objective (the fullest rank of a rank resource, otherwise the use of
    all places together, which bounds the average). Where that leaves the answer open, capacity is
    lent in powers of two (:mod:`formulations.diagnose.questions`), or on instances too large for
    the exact model, halved between what is proved too little and what is known to do.

    Parameters
    ----------
    instance : Instance
    resource : str
        Name of one of its resources; what the answer is called where several grow together.
    asker : Asker
    share : float
        Part of the asker's remaining time to spend.
    together : sequence of str
        Resources of one scope that have one capacity between them; default: ``resource`` alone.
    """
    document, names = instance_to_dict(instance), list(together) or [resource]
    described = next(r for r in instance.resources if r.name == names[0])
    ranks = described.scope == Scope.RANK
    question = use_as_cost(document, names, "busiest_rank" if ranks else "total")
    places = 1 if ranks else len(described.capacity)
    outcome = asker.ask(question, share if ranks and len(names) == 1 else share / 2)
    bound = None if outcome.bound is None else max(0, -(-outcome.bound // places))
    least = None
    if outcome.placement is not None:
        least = _fullest(instance, outcome.placement, names)
        if least != bound and not (ranks and len(names) == 1):
            least, bound = _narrow(instance, document, names, (least, bound or 0), asker, share)
    return Least(
        resource=resource,
        scope=described.scope.value,
        least=least,
        bound=bound,
        impossible=outcome.status == Status.INFEASIBLE,
        capacity=tuple(int(c) for c in described.capacity),
    )


def _narrow(
    instance: Instance,
    document: dict[str, Any],
    names: Sequence[str],
    known: tuple[int, int],
    asker: Asker,
    share: float,
) -> tuple[int, int]:
    """The answer, or what is known of it, from (a capacity that does, a bound)."""
    least, bound = known
    if placement_variables(instance) > EXACT_ALONE:
        return _halve(instance, document, names, known, asker, share)
    outcome = asker.ask(lendable(document, names, least), share)
    if outcome.objective is not None:
        least = min(least, outcome.objective)
    return least, min(least, max(bound, outcome.bound or 0))


def _halve(
    instance: Instance,
    document: dict[str, Any],
    names: Sequence[str],
    known: tuple[int, int],
    asker: Asker,
    share: float,
) -> tuple[int, int]:
    least, bound = known
    left = asker.remaining()
    end = 0.0 if left is None else left * (1 - share)
    while bound < least and not asker.over() and (asker.remaining() or 1.0) > end:
        middle = (bound + least) // 2
        outcome = asker.try_to_fit(with_capacity(document, names, middle), share / 4)
        if outcome.placement is not None:
            least = _fullest(instance, outcome.placement, names)
        elif outcome.status == Status.INFEASIBLE:
            bound = middle + 1
        else:
            break
    return least, bound


def _fullest(instance: Instance, placement: Placement, names: Sequence[str]) -> int:
    """Largest use of the resources at any place; the plan may ignore their capacity."""
    loads = check(instance, placement).loads
    assert loads is not None
    return max(
        int(use.max())
        for resource, use in zip(instance.resources, loads.use, strict=True)
        if resource.name in names
    )
