"""The objective over one capacity: points that pass plans and bounds on to each other.

More of everything never costs more: a plan for less is a plan for more, and a bound for more is a
bound for less. A point where the two meet is proved without a solve.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from formulations.capacity.budget import Budget
from formulations.instance import Instance
from formulations.result.certificate import Certificate
from formulations.result.outcome import Outcome, Status, gap_between
from formulations.result.placement import Placement

if TYPE_CHECKING:
    from formulations.capacity.proofs import Proofs

Point = TypeVar("Point")
Plan = TypeVar("Plan")


class Known(Generic[Point, Plan]):
    """The best plans and bounds at the points of a partial order.

    Parameters
    ----------
    as_much : callable
        Whether the first of two points has at least as much of everything as the second.
    """

    def __init__(self, as_much: Callable[[Point, Point], bool]) -> None:
        self._as_much = as_much
        self._plans: list[tuple[Point, int, Plan]] = []
        self._bounds: list[tuple[Point, int, Certificate | None]] = []
        self._impossible: list[Point] = []

    def take_plan(self, at: Point, objective: int, plan: Plan) -> None:
        """Add a plan for a point, which holds wherever there is as much."""
        self._plans.append((at, objective, plan))

    def take_bound(self, at: Point, bound: int, proof: Certificate | None = None) -> None:
        """Add a bound for a point, which holds wherever there is no more, with its certificate."""
        self._bounds.append((at, bound, proof))

    def take_impossible(self, at: Point) -> None:
        """Add that a point has no plan, as has none with no more."""
        self._impossible.append(at)

    def plan(self, at: Point) -> tuple[int, Plan] | None:
        """The lowest objective at a point, and its plan: of equals, that of the smallest point."""
        best: tuple[Point, int, Plan] | None = None
        for each in self._plans:
            if self._as_much(at, each[0]) and (best is None or self._before(each, best)):
                best = each
        return None if best is None else best[1:]

    def _before(self, one: tuple[Point, int, Plan], other: tuple[Point, int, Plan]) -> bool:
        smaller = one[0] != other[0] and self._as_much(other[0], one[0])
        return one[1] < other[1] or (one[1] == other[1] and smaller)

    def bound(self, at: Point) -> int | None:
        """The highest bound at a point."""
        return max((b for point, b, _ in self._bounds if self._as_much(point, at)), default=None)

    def certificates(self, at: Point) -> list[tuple[int, Certificate]]:
        """The certified bounds at a point, the highest first, with their certificates."""
        there = [(b, c) for point, b, c in self._bounds if c and self._as_much(point, at)]
        return sorted(there, key=lambda each: -each[0])

    def impossible(self, at: Point) -> bool:
        """Whether it is proved that a point has no plan."""
        return any(self._as_much(point, at) for point in self._impossible)


@dataclass(frozen=True)
class Answer:
    """What is known at one point; None means unknown."""

    objective: int | None = None
    placement: Placement | None = None
    """The plan with this objective."""
    bound: int | None = None
    """Lower bound on every plan at this point."""
    infeasible: bool = False
    """Whether it is proved that no plan exists."""
    seconds: float | None = None
    """Duration of its own solve; None when it was not solved."""

    @property
    def proved(self) -> bool:
        """Whether the point is settled: infeasible, or objective and bound agree."""
        return self.infeasible or (self.objective is not None and self.objective == self.bound)

    @property
    def status(self) -> str:
        """The status, in an Outcome's words."""
        if self.infeasible:
            return Status.INFEASIBLE.value
        if self.objective is None:
            return Status.UNKNOWN.value
        return Status.OPTIMAL.value if self.proved else Status.FEASIBLE.value

    @property
    def gap(self) -> float | None:
        """(objective − bound)/max(1, |objective|)."""
        return gap_between(self.objective, self.bound)

    def reaches(self, target: int | None) -> bool | None:
        """Whether a plan of at most ``target`` (None: any plan) is known to exist, or not to; None:
        neither."""
        if self.infeasible:
            return False
        if self.objective is not None and (target is None or self.objective <= target):
            return True
        refuted = target is not None and self.bound is not None and self.bound > target
        return False if refuted else None


class Curve:
    """The objective over one capacity, an int at every point; ``outcomes`` are those of its solves.

    Parameters
    ----------
    make : callable
        The Instance at a point.
    need : callable or None
        The least point at which a plan fits. None: more is not better, and every point is on its
        own.
    budget : Budget
    proofs : Proofs, optional
        Takes in the certificate of every outcome.
    ask : callable, optional
        The outcome at a point, within a share of the time left. Default: its Instance is solved
        from the best known plan and multipliers.
    """

    def __init__(
        self,
        make: Callable[[int], Instance],
        need: Callable[[Placement], int] | None,
        budget: Budget,
        proofs: Proofs | None = None,
        ask: Callable[[int, float], Outcome] | None = None,
    ) -> None:
        self.make, self.budget = make, budget
        self._need, self._proofs, self._ask = need, proofs, ask or self._improve
        on_its_own: Known[int, Placement] = Known(operator.eq if need is None else operator.ge)
        self.known = on_its_own if proofs is None else proofs.known
        self.outcomes: dict[int, Outcome] = {}

    def take_plan(self, at: int, placement: Placement | None, objective: int | None) -> None:
        """Add a plan, if there is one, that fits at a point."""
        if placement is None or objective is None:
            return
        least = at if self._need is None else min(at, self._need(placement))
        self.known.take_plan(least, objective, placement)

    def take(self, at: int, outcome: Outcome) -> None:
        """Add the plan and the bounds of an outcome at a point."""
        self.take_plan(at, outcome.placement, outcome.objective)
        if outcome.status == Status.INFEASIBLE:
            self.known.take_impossible(at)
        elif outcome.proved_bound is not None:
            self.known.take_bound(at, outcome.proved_bound)
        if self._proofs is not None:
            self._proofs.learn(at, outcome)

    def at(self, point: int) -> Answer:
        """What is known at a point."""
        objective, placement = self.known.plan(point) or (None, None)
        impossible, own = self.known.impossible(point), self.outcomes.get(point)
        seconds = None if own is None else own.seconds or None
        return Answer(objective, placement, self.known.bound(point), impossible, seconds)

    def solve(self, point: int, share: float = 1.0) -> Answer:
        """Solve a point within a share of the time left."""
        if self._proofs is not None:
            self._proofs.add(point)
        self.outcomes[point] = self._ask(point, share)
        self.take(point, self.outcomes[point])
        return self.at(point)

    def _improve(self, point: int, share: float) -> Outcome:
        prices = None if self._proofs is None else self._proofs.prices(point)
        return self.budget.solve(self.make(point), share, self.at(point).placement, prices)

    def least(
        self, low: int, high: int, target: int | None = None, *, share: float, grain: int = 1
    ) -> tuple[int, int]:
        """Bisect for the least point that reaches a target, above ``low`` and at most ``high``.

        Returns it and the largest point proved too small, or ``low``. Points that stay open count
        as too small, as smaller answers are still found above them.
        """
        refuted = low
        while high - low > grain and not self.budget.over():
            middle = (low + high) // 2
            if self._proofs is not None:
                self._proofs.add(middle)
            answer = self.at(middle)
            if answer.reaches(target) is None:
                answer = self.solve(middle, share)
            reached = answer.reaches(target)
            if reached and answer.placement is not None:
                high = middle if self._need is None else min(middle, self._need(answer.placement))
                continue
            low = middle
            refuted = middle if reached is False else refuted
        return high, refuted

    def sweep(self, points: Sequence[int], enough: float = 0.0) -> dict[int, Answer]:
        """Solve ascending points, the ends first, except where the gap is at most ``enough``."""
        order = [points[at] for at in _halving(len(points))]
        for done, point in enumerate(order):
            answer = self.at(point)
            if not answer.proved and (answer.gap is None or answer.gap > enough):
                self.solve(point, min(1.0, 2 / (len(order) - done)))
        return {point: self.at(point) for point in points}


def _halving(length: int) -> list[int]:
    """The order of a sweep's positions: the ends, then the middle of every gap."""
    order = [0, length - 1] if length > 1 else [0]
    spans = [(0, length - 1)]
    while spans:
        low, high = spans.pop(0)
        middle = (low + high) // 2
        if high - low > 1:
            order.append(middle)
            spans += [(low, middle), (middle, high)]
    return order
