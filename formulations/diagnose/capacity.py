"""The least uniform capacity of one resource at which a plan exists, with the others as given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from formulations.diagnose.questions import (
    fullest,
    use_as_cost,
    with_capacity,
)
from formulations.instance import Instance, Objective, Scope
from formulations.result.outcome import Status


@dataclass(frozen=True)
class Least:
    """Least uniform capacity of a resource.

    Attributes
    ----------
    resource, scope : str
    least : int or None
        A uniform capacity at which a plan is known to exist; None: none found.
    bound : int or None
        No smaller capacity suffices; equals ``least`` when proved.
    impossible : bool
        Proved: no capacity of this resource helps, because the other constraints conflict.
    capacity : tuple of int
        The present capacity of every place.
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
    budget: Budget,
    share: float = 1.0,
    together: Sequence[str] = (),
) -> Least:
    """Solve for the least uniform capacity of a resource.

    First its use becomes the objective (the fullest rank of a rank resource, otherwise the use of
    all places together, which bounds the average). Where that leaves the answer open, it is
    bisected between a capacity proved too small and one known to suffice.

    Parameters
    ----------
    instance : Instance
    resource : str
        Name of one of its resources; with ``together``, the name given to the answer.
    budget : Budget
    share : float
        Part of the budget's remaining time to spend.
    together : sequence of str
        Resources of one scope whose capacities grow together, each keeping its difference from the
        first, whose least capacity is the answer; default: ``resource`` alone.
    """
    names = list(together) or [resource]
    described = next(r for r in instance.resources if r.name == names[0])
    ranks = described.scope == Scope.RANK
    alone = ranks and len(names) == 1  # then the fullest rank is the whole question
    objective = Objective.BUSIEST_RANK if ranks else Objective.TOTAL
    asked = use_as_cost(instance, names, objective)
    outcome = budget.ask(asked, share if alone else share / 2)
    places = 1 if ranks else len(described.capacity)
    bound = None if outcome.bound is None else max(0, -(-outcome.bound // places))
    least = None
    if outcome.placement is not None:
        least = fullest(instance, outcome.placement, names)
        if least != bound and not alone:
            least, bound = _bisected(instance, names, (bound or 0, least), budget.part(share))
    return Least(
        resource=resource,
        scope=described.scope.value,
        least=least,
        bound=bound,
        impossible=outcome.status == Status.INFEASIBLE,
        capacity=tuple(int(c) for c in described.capacity),
    )


def _bisected(
    instance: Instance, names: Sequence[str], between: tuple[int, int], budget: Budget
) -> tuple[int, int]:
    """The least capacity between a bound on it and one that suffices, and a bound again; an
    undecided one counts as too small, so that smaller ones are still found above it."""
    curve = Curve(
        lambda capacity: with_capacity(instance, names, capacity),
        lambda plan: fullest(instance, plan, names),
        budget,
        ask=lambda capacity, share: budget.try_to_fit(curve.make(capacity), share),
    )
    least, too_small = curve.least(between[0] - 1, between[1], share=0.25)
    return least, too_small + 1
