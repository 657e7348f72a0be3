"""One time limit shared by all solves of a question, and grids whose answers help each other.

More capacity never costs more: a plan for less capacity is a plan for more, and a bound for more
capacity is a bound for less. So each point's plan and bound are passed on to the others, and a
point where they meet is proved without a solve.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from formulations import Instance, Outcome, Placement, Settings, Status, StoppedBy, registry, solve
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import gap_between, nothing

#: Least seconds for a solve, so that the last point of a grid gets a useful time limit.
LEAST = 0.05


def best_known(outcome: Outcome) -> int:
    """The objective that a plan must beat to improve on an outcome that has a plan: its own, or the
    better one it had before goals."""
    assert outcome.objective is not None
    given = outcome.before_goals
    return outcome.objective if given is None else min(given, outcome.objective)


class Budget:
    """Solves Instances with one formulation of the registry within one time limit.

    The settings' ``time_limit`` covers all solves through this object; no single solve takes more
    than ``each`` seconds. Outcomes carry certificates only with ``certificate=True``.
    """

    def __init__(
        self, settings: Settings | None = None, formulation: str = "auto",
        each: float | None = None, certificate: bool = False,
    ) -> None:  # fmt: skip
        self.settings, self.each, self.certificate = settings or Settings(), each, certificate
        self.formulation = registry.get(formulation).name
        limit = self.settings.time_limit
        self._end = None if limit is None else time.monotonic() + limit

    def left(self) -> float | None:
        """Seconds left; None without a limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        """Whether time is up or the caller asked to stop."""
        return self.settings.stop.is_set() or self.left() == 0.0

    def part(self, share: float) -> Budget:
        """A separate budget with a share of the time left, at least 0.1 s."""
        left = self.left()
        limit = None if left is None else max(0.1, left * share)
        settings = replace(self.settings, time_limit=limit)
        return Budget(settings, self.formulation, self.each, self.certificate)

    def no_longer_than(self, seconds: float) -> Budget:
        """The same time left, with a limit in seconds on each solve."""
        settings = replace(self.settings, time_limit=self.left())
        return Budget(settings, self.formulation, seconds, self.certificate)

    def certifying(self, gap: float = 0.0) -> Budget:
        """The same time left, for solves that produce certificates and stop at ``gap``."""
        settings = replace(self.settings, time_limit=self.left(), gap=gap)
        return Budget(settings, self.formulation, self.each, certificate=True)

    def solve(
        self,
        instance: Instance,
        share: float = 1.0,
        hint: Placement | None = None,
        prices: Certificate | None = None,
    ) -> Outcome:
        """Solve within a share of the time left; status unknown when none is left.

        Polishing is skipped: only objective and bound matter here. Searches start from ``hint``,
        bounds from the multipliers of ``prices``.
        """
        if self.over():
            stopped = StoppedBy.INTERRUPTED if self.settings.stop.is_set() else StoppedBy.TIME_LIMIT
            return nothing(self.formulation, stopped, "no time was left for this solve")
        left = self.left()
        limit = None if left is None else max(LEAST, left * share)
        if self.each is not None:
            limit = self.each if limit is None else min(limit, self.each)
        settings = replace(
            self.settings, time_limit=limit, hint=hint, prices=prices, polish=False,
            certificate=self.certificate,
        )  # fmt: skip
        return solve(instance, self.formulation, settings)


@dataclass
class Answer:
    """What is known at one point of a grid; None means unknown."""

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


class Learner(Protocol):
    """Derives bounds for the points of a grid from the outcomes at other points."""

    def learn(self, at: int, outcome: Outcome) -> Iterable[tuple[int, int]]:
        """Take in the outcome at a point; returns the (point, bound) pairs that follow."""

    def prices(self, at: int) -> Certificate | None:
        """Multipliers to start a point's bounds from."""


def solve_grid(
    points: Sequence[int],
    make: Callable[[int], Instance],
    budget: Budget,
    known: Sequence[tuple[int, Placement, int]] = (),
    bounds: Sequence[tuple[int, int]] = (),
    *,
    enough: float = 0.0,
    proofs: Learner | None = None,
) -> dict[int, Answer]:
    """Solve a grid, the ends first, starting each solve from the best known plan.

    ``points`` ascend: they are capacities, or other limits whose increase never makes the best plan
    worse. A plan in ``known`` (point, placement, objective) fits at its point and at all larger
    ones; a bound in ``bounds`` (point, bound) holds at its point and at all smaller ones. Points
    with a gap of at most ``enough`` are not solved; ``proofs`` takes in every outcome.
    """
    answers = {point: Answer() for point in points}
    instances = {point: make(point) for point in answers}
    for point, placement, objective in known:
        _share_plan(answers, instances, point, placement, objective)
    for point, bound in bounds:
        _share_bound(answers, point, bound)
    order = [points[at] for at in _halving(len(points))]
    for done, point in enumerate(order):
        gap = answers[point].gap
        if answers[point].proved or (gap is not None and gap <= enough):
            continue
        hint = answers[point].placement
        share = min(1.0, 2 / (len(order) - done))
        prices = None if proofs is None else proofs.prices(point)
        outcome = budget.solve(instances[point], share, hint, prices)
        _learn(answers, instances, point, outcome)
        for at, bound in () if proofs is None else proofs.learn(point, outcome):
            _share_bound(answers, at, bound)
    return answers


def _learn(
    answers: dict[int, Answer], instances: dict[int, Instance], point: int, outcome: Outcome
) -> None:
    """Take in an outcome and pass its plan and bound on to the other points."""
    answers[point].seconds = outcome.seconds or None
    if outcome.placement is not None and outcome.objective is not None:
        _share_plan(answers, instances, point, outcome.placement, outcome.objective)
    if outcome.status == Status.INFEASIBLE:
        for other, answer in answers.items():
            if other <= point:
                answer.infeasible = True
    elif outcome.proved_bound is not None:
        _share_bound(answers, point, outcome.proved_bound)


def _share_bound(answers: dict[int, Answer], point: int, bound: int) -> None:
    for other, answer in answers.items():
        if other <= point and (answer.bound is None or answer.bound < bound):
            answer.bound = bound


def _share_plan(
    answers: dict[int, Answer],
    instances: dict[int, Instance],
    point: int,
    placement: Placement,
    objective: int,
) -> None:
    """Pass a plan on to larger points, and to any other where the solver-free check accepts it."""
    for other, answer in answers.items():
        if answer.objective is not None and answer.objective <= objective:
            continue
        if point <= other or check(instances[other], placement).feasible:
            answer.objective, answer.placement = objective, placement


def _halving(length: int) -> list[int]:
    """The order of a grid's positions: the ends, then the middle of every gap."""
    order = [0, length - 1] if length > 1 else [0]
    spans = [(0, length - 1)]
    while spans:
        low, high = spans.pop(0)
        middle = (low + high) // 2
        if high - low > 1:
            order.append(middle)
            spans += [(low, middle), (middle, high)]
    return order
