"""One set of prices: is the plan still best at them, and what does keeping it cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations import Instance, Placement, Status
from formulations.capacity.budget import Budget
from formulations.result.certificate import Certificate
from formulations.result.check import value_of
from milp_planner.features.explain.memory import relaxed_bound, usable_certificate
from milp_planner.files import Facts

SAME, CHANGES, OPEN, UNFIT = "same", "changes", "open", "unfit"


@dataclass(frozen=True)
class Trial(Facts):
    """A plan at changed prices, against the best plan at them."""

    factors: dict[str, float]
    """Factor by which each parameter was multiplied."""
    status: str
    """How far the best plan at these prices is known, as a Status."""
    kept: int | None
    """Objective of the plan if it is kept; None where it no longer fits."""
    objective: int | None
    bound: int | None
    """The best known plan's objective, and a lower bound on every plan's."""
    regret: tuple[float, float | None] | None
    """Smallest and largest possible (kept − optimum)/optimum: against ``objective`` and against
    ``bound``. None where the plan no longer fits, or no plan does."""
    verdict: str
    """``same``: the plan is proved best; ``changes``: another plan is better at these prices but
    not at the plan's own, so the prices are the cause; ``open``: neither is known; ``unfit``: the
    plan no longer fits."""
    tables: int | None
    """Number of tables with another option in the best known plan. Rank changes do not count: equal
    ranks are interchangeable."""


class Judge:
    """Judges one plan, which must fit ``here``, at many prices.

    Plans found warm-start later solves. ``here`` has the plan's own prices; the certificate's
    multipliers bound the optimum at any prices.
    """

    def __init__(
        self, here: Instance, plan: Placement, certificate: Certificate | None = None
    ) -> None:
        self.here, self.plan = here, plan
        self.certificate = usable_certificate(certificate)
        self.pool = [plan]
        now = value_of(here, plan)
        assert now is not None
        self.now = now
        self._own: list[int | None] = [now]

    @property
    def better(self) -> int | None:
        """The least objective at the plan's own prices, if a plan found beats the plan there."""
        best = min(value for value in self._own if value is not None)
        return best if best < self.now else None

    def judge(
        self, instance: Instance, factors: dict[str, float], budget: Budget, share: float
    ) -> Trial:
        """Solve at these prices, starting from the best known plan, and compare."""
        best, objective = self._best(instance)
        outcome = budget.solve(instance, share, best)
        value = outcome.objective
        better = value is not None and (objective is None or value < objective)
        if outcome.placement is not None and better:
            best, objective = outcome.placement, value
            self.add(outcome.placement)
        others = 0 if best is None else int((best.options != self.plan.options).sum())
        bounds = (outcome.proved_bound, relaxed_bound(instance, self.certificate))
        bound = max((b for b in bounds if b is not None), default=None)
        return judged(
            factors, value_of(instance, self.plan), objective, bound,
            self.changes(instance), others, outcome.status == Status.INFEASIBLE,
        )  # fmt: skip

    def add(self, placement: Placement) -> None:
        """Add a plan found on the way."""
        self.pool.append(placement)
        self._own.append(value_of(self.here, placement))

    def changes(self, instance: Instance) -> bool:
        """Whether a known plan is better at these prices but not at the plan's own."""
        kept = value_of(instance, self.plan)
        if kept is None:
            return False
        others = zip(self.pool[1:], self._own[1:], strict=True)
        rest = (p for p, own in others if own is None or own >= self.now)
        return any((value := value_of(instance, p)) is not None and value < kept for p in rest)

    def _best(self, instance: Instance) -> tuple[Placement | None, int | None]:
        """The best of the known plans; the plan itself wins ties."""
        values = [value_of(instance, placement) for placement in self.pool]
        fitting = [(v, i) for i, v in enumerate(values) if v is not None]
        if not fitting:
            return None, None
        value, index = min(fitting)
        return self.pool[index], value


def judged(
    factors: dict[str, float],
    kept: int | None,
    objective: int | None,
    bound: int | None,
    changes: bool,
    tables: int | None = None,
    impossible: bool = False,
) -> Trial:
    """The verdict at some prices; for the arguments see the fields of :class:`Trial`."""
    if objective is None:
        status = Status.INFEASIBLE if impossible else Status.UNKNOWN
        return Trial(factors, status.value, kept, None, None, None, UNFIT, None)
    bound = None if bound is None else min(bound, objective)
    status = Status.OPTIMAL if objective == bound else Status.FEASIBLE
    regret = regret_of(kept, objective, bound)
    verdict = OPEN
    if regret is None:
        verdict = UNFIT
    elif changes:
        verdict = CHANGES
    elif kept == bound:
        verdict = SAME
    return Trial(factors, status.value, kept, objective, bound, regret, verdict, tables)


def regret_of(
    kept: int | None, objective: int | None, bound: int | None
) -> tuple[float, float | None] | None:
    """Range of (kept − optimum)/optimum, as the optimum lies between bound and objective."""
    if kept is None or objective is None:
        return None
    least = (kept - objective) / max(1, abs(objective))
    if bound == objective:
        return least, least
    return least, None if bound is None or bound <= 0 else (kept - bound) / bound


@dataclass(frozen=True)
class Summary(Facts):
    """Many trials in a few numbers."""

    draws: int
    same: int
    changes: int
    open: int
    unfit: int
    """The number of trials, and of each verdict."""
    least: tuple[float | None, float | None]
    most: tuple[float | None, float | None]
    """Median and maximum of the lower and of the upper ends of the regret, over the trials where
    the plan fits. None where there is no such trial, or where the value is unknown."""


def summary_of(trials: Sequence[Trial]) -> Summary:
    """Counts of verdicts, median and largest regret."""
    counts = {v: sum(t.verdict == v for t in trials) for v in (SAME, CHANGES, OPEN, UNFIT)}
    regrets = [t.regret for t in trials if t.regret is not None]
    return Summary(
        len(trials), counts[SAME], counts[CHANGES], counts[OPEN], counts[UNFIT],
        _median_and_largest([least for least, _ in regrets]),
        _median_and_largest([most for _, most in regrets]),
    )  # fmt: skip


def _median_and_largest(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """An unknown value counts as the largest; a result that it determines is unknown, too."""
    if not values:
        return None, None
    known = np.asarray([np.inf if v is None else v for v in values])
    found = float(np.median(known)), float(known.max())
    return tuple(v if np.isfinite(v) else None for v in found)  # type: ignore[return-value]
