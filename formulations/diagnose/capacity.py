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
from formulations.instance import Instance, Objective, Resource, Scope
from formulations.result.outcome import Outcome, Status
from formulations.result.placement import Placement


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
    question = _Question(instance, list(together) or [resource], budget, share)
    outcome, bound = question.fullest_place()
    least = None
    if outcome.placement is not None:
        least = question.fullest(outcome.placement)
        if least != bound and not question.settled:
            least, bound = question.narrow(least, bound or 0)
    described = question.described
    return Least(
        resource=resource,
        scope=described.scope.value,
        least=least,
        bound=bound,
        impossible=outcome.status == Status.INFEASIBLE,
        capacity=tuple(int(c) for c in described.capacity),
    )


@dataclass(frozen=True)
class _Question:
    """Resources of one scope, and the share of the budget's time they may take."""

    instance: Instance
    names: Sequence[str]
    budget: Budget
    share: float

    @property
    def described(self) -> Resource:
        """The first of the resources."""
        return next(r for r in self.instance.resources if r.name == self.names[0])

    @property
    def settled(self) -> bool:
        """Whether minimising the fullest place is the whole question."""
        return self.described.scope == Scope.RANK and len(self.names) == 1

    def fullest_place(self) -> tuple[Outcome, int | None]:
        """The plan of least use, and a bound on the capacity."""
        ranks = self.described.scope == Scope.RANK
        objective = Objective.BUSIEST_RANK if ranks else Objective.TOTAL
        outcome = self.budget.ask(
            use_as_cost(self.instance, self.names, objective),
            self.share if self.settled else self.share / 2,
        )
        places = 1 if ranks else len(self.described.capacity)
        return outcome, None if outcome.bound is None else max(0, -(-outcome.bound // places))

    def narrow(self, least: int, bound: int) -> tuple[int, int]:
        """Bisect between a bound on the answer and a capacity that suffices; an undecided one
        counts as too small, so that ``least`` can still fall."""
        part = self.budget.part(self.share)
        curve = Curve(
            lambda capacity: with_capacity(self.instance, self.names, capacity), self.fullest, part,
            ask=lambda capacity, share: part.try_to_fit(curve.make(capacity), share),
        )  # fmt: skip
        least, too_small = curve.least(bound - 1, least, share=0.25)
        return least, too_small + 1

    def fullest(self, placement: Placement) -> int:
        """The capacity of the first resource that a plan needs."""
        return fullest(self.instance, placement, self.names)
