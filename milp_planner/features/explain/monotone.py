"""A grid of capacities whose answers help each other.

More capacity never costs more: a plan for less capacity is a plan for more, and a bound for more
capacity is a bound for less. So the answers of a grid are spread over it, and a point whose plan
and bound meet that way is proved without being solved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from formulations import Instance, Outcome, Placement, Status
from formulations.result.check import check
from formulations.result.outcome import gap_between
from milp_planner.features.explain.budget import Budget

Point = tuple[int, ...]


@dataclass
class Answer:
    """What is known at one point of a grid; None is unknown."""

    objective: int | None = None
    placement: Placement | None = None
    """The plan that reaches it."""
    bound: int | None = None
    """No plan at this point costs less."""
    infeasible: bool = False
    """Proved: there is no plan."""
    seconds: float | None = None
    """Of its own solve; None when other points answered it."""

    @property
    def proved(self) -> bool:
        """Whether nothing more is to be known."""
        return self.infeasible or (self.objective is not None and self.objective == self.bound)

    @property
    def status(self) -> str:
        """As an Outcome's."""
        if self.infeasible:
            return Status.INFEASIBLE.value
        if self.objective is None:
            return Status.UNKNOWN.value
        return Status.OPTIMAL.value if self.proved else Status.FEASIBLE.value

    @property
    def gap(self) -> float | None:
        """(objective − bound)/max(1, |objective|)."""
        return gap_between(self.objective, self.bound)


def solve_grid(
    axes: Sequence[Sequence[int]],
    make: Callable[[Point], Instance],
    budget: Budget,
    known: Sequence[tuple[Point, Placement, int]] = (),
    bounds: Sequence[tuple[Point, int]] = (),
) -> dict[Point, Answer]:
    """Answer every point of a grid, the corners first, each solve started from the best plan known.

    Parameters
    ----------
    axes : sequences of int
        Ascending capacities of each tier; the grid is their product.
    make : callable
        The Instance at a point.
    budget : Budget
    known : sequence of (point, placement, objective)
        Plans that are known to fit at a point, and so wherever there is at least as much.
    bounds : sequence of (point, bound)
        What is proved of a point, and so wherever there is at most as much.

    Returns
    -------
    dict of point to Answer
        In the order of the product of the axes.
    """
    answers = {point: Answer() for point in product(*axes)}
    instances = {point: make(point) for point in answers}
    for point, placement, objective in known:
        _share_plan(answers, instances, point, placement, objective)
    for point, bound in bounds:
        _share_bound(answers, point, bound)
    order = _order(axes)
    for done, point in enumerate(order):
        if not answers[point].proved:
            hint = answers[point].placement
            outcome = budget.solve(instances[point], min(1.0, 2 / (len(order) - done)), hint)
            _learn(answers, instances, point, outcome)
    return answers


def _learn(
    answers: dict[Point, Answer],
    instances: dict[Point, Instance],
    point: Point,
    outcome: Outcome,
) -> None:
    """Take an outcome in and spread what it says over the grid."""
    answers[point].seconds = outcome.seconds
    if outcome.placement is not None and outcome.objective is not None:
        _share_plan(answers, instances, point, outcome.placement, outcome.objective)
    if outcome.status == Status.INFEASIBLE:
        for other, answer in answers.items():
            if _within(other, point):
                answer.infeasible = True
    elif outcome.proved_bound is not None:
        _share_bound(answers, point, outcome.proved_bound)


def _share_bound(answers: dict[Point, Answer], point: Point, bound: int) -> None:
    for other, answer in answers.items():
        if _within(other, point) and (answer.bound is None or answer.bound < bound):
            answer.bound = bound


def _share_plan(
    answers: dict[Point, Answer],
    instances: dict[Point, Instance],
    point: Point,
    placement: Placement,
    objective: int,
) -> None:
    """To every point with at least as much, and wherever else the solver-free check accepts it."""
    for other, answer in answers.items():
        if answer.objective is not None and answer.objective <= objective:
            continue
        if _within(point, other) or check(instances[other], placement).feasible:
            answer.objective, answer.placement = objective, placement


def _within(less: Point, more: Point) -> bool:
    return all(a <= b for a, b in zip(less, more, strict=True))


def _order(axes: Sequence[Sequence[int]]) -> list[Point]:
    """Both ends of every axis first, then halves and quarters: equal ends settle the middle."""
    ranked = [_halving(len(axis)) for axis in axes]
    indexed = product(*(range(len(axis)) for axis in axes))
    order = sorted(indexed, key=lambda at: sum(ranked[i][j] for i, j in enumerate(at)))
    return [tuple(axes[i][j] for i, j in enumerate(at)) for at in order]


def _halving(length: int) -> list[int]:
    """When each position of an axis is visited: the ends, then the middle of every gap."""
    visit = [0, length - 1] if length > 1 else [0]
    spans = [(0, length - 1)]
    while spans:
        low, high = spans.pop(0)
        middle = (low + high) // 2
        if high - low > 1:
            visit.append(middle)
            spans += [(low, middle), (middle, high)]
    rank = [0] * length
    for order, position in enumerate(visit):
        rank[position] = order
    return rank
