"""How wrong may a price be before the plan changes, and what would keeping the plan cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from formulations import Instance
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.perturb import Parameter, parameters, repriced, same_prices
from milp_planner.features.explain.trial import (
    CHANGES,
    SAME,
    UNFIT,
    Judge,
    Summary,
    Trial,
    summary_of,
    value_of,
)
from milp_planner.plans.placement import Plan


@dataclass(frozen=True)
class SensitivityInfo:
    """What wrong prices do to a plan."""

    objective_kind: str
    time_unit: str
    now: int
    """Objective of the plan at the prices as they are."""
    bound: int | None
    """No plan goes below it there."""
    better: int | None
    """Objective there of the best plan that turned up and beats the plan at its own prices, too;
    such a plan is no sign of sensitivity."""
    assumed: float
    """Spread of the parameters for which the profile gives none."""
    seed: int
    asked: int
    """Of the draws: the seed, and how many were asked for; fewer were made where time ran out."""
    singles: tuple[Single, ...]
    untried: tuple[str, ...]
    """Parameters that time did not suffice for."""
    draws: tuple[Trial, ...]
    """All parameters at once, each uniform within its spread."""

    @property
    def summary(self) -> Summary:
        """The draws in a few numbers."""
        return summary_of(self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the summary."""
        return asdict(self) | {"summary": self.summary.to_dict()}


def sensitivity(
    plan: Plan, budget: Budget, *, assumed: float = 0.2, draws: int = 20
) -> SensitivityInfo:
    """Change the prices within their spread, solve again, and compare.

    The spread is ``assumed`` where the profile gives none. ``draws`` change all parameters at once.
    BadInput when the plan places nothing or its prices are not from here, or for a spread or a
    number of draws out of range.
    """
    placement = plan.outcome.placement
    if placement is None:
        raise BadInput("explain sensitivity: the plan places nothing; ask why-not")
    if draws < 0:
        raise BadInput(f"draws is {draws}; needs a whole number from 0")
    known = parameters(plan, assumed)
    here = _here(plan)
    if value_of(here, placement) is None:
        raise BadInput("the plan no longer fits as this version prices it: plan again")
    judge, seed = Judge(here, placement, plan.outcome.certificate), budget.settings.seed
    bound = _bound(plan, here, budget, len(known) * 2 + draws)
    search = Search(plan, judge, budget, here, proved=bound == judge.now)
    singles, untried = search.singles(known, budget.part(0.5))
    trials = search.draws(known, draws, seed)
    singles = search.refined(singles)
    return SensitivityInfo(
        here.objective.value, here.time_unit, judge.now, bound, judge.better, assumed, seed, draws,
        singles, untried, trials,
    )  # fmt: skip


def _here(plan: Plan) -> Instance:
    """The Instance at the prices as they are: the plan's own unless this version prices anew."""
    again = repriced(plan, {})
    return plan.instance if same_prices(again, plan.instance) else again


def _bound(plan: Plan, here: Instance, budget: Budget, others: int) -> int | None:
    """Of the prices as they are: the plan's own where they are its own."""
    if here is plan.instance and plan.outcome.proved_bound is not None:
        return plan.outcome.proved_bound
    return budget.solve(here, 1 / (others + 1), plan.outcome.placement).proved_bound


#: Halvings of the way to a change, so that it is known to 1/16 of the spread.
HALVINGS = 4


@dataclass(frozen=True)
class Side:
    """One parameter lowered, or raised, alone."""

    end: Trial
    """At the end of its spread."""
    same_at: float | None = None
    changes_at: float | None = None
    """Relative changes (−0.1: 10% less): the largest tried before ``changes_at`` at which the plan
    is proved best, and the smallest tried at which it changes or no longer fits. None where that is
    not known, or ``end`` shows no change; not all between was tried."""


@dataclass(frozen=True)
class Single:
    """One parameter, the others as the profile has them; None: no price of any option changes."""

    parameter: Parameter
    lower: Side | None
    higher: Side | None


@dataclass
class Search:
    """The solves, sharing one budget."""

    plan: Plan
    judge: Judge
    budget: Budget
    here: Instance
    """At the prices as they are."""
    proved: bool
    """Whether the plan is proved best there."""

    def singles(
        self, known: Sequence[Parameter], budget: Budget
    ) -> tuple[tuple[Single, ...], tuple[str, ...]]:
        """Both ends of every parameter; and the names of those that time did not suffice for."""
        found: list[Single] = []
        for index, parameter in enumerate(known):
            if budget.over():
                return tuple(found), tuple(p.name for p in known[index:])
            left = 2 * (len(known) - index)
            lower = self._end(parameter, -1, budget, 1 / left)
            higher = self._end(parameter, 1, budget, 1 / (left - 1))
            found.append(Single(parameter, lower, higher))
        return tuple(found), ()

    def _end(self, parameter: Parameter, sign: int, budget: Budget, share: float) -> Side | None:
        factors = {parameter.name: 1 + sign * parameter.spread}
        instance = repriced(self.plan, factors)
        if same_prices(instance, self.here):
            return None
        return Side(self.judge.judge(instance, factors, budget, share))

    def draws(self, known: Sequence[Parameter], count: int, seed: int) -> tuple[Trial, ...]:
        """All parameters at once; as many draws as time allows."""
        rng = np.random.default_rng(seed)
        found: list[Trial] = []
        for index in range(count):
            factors = {p.name: float(1 + p.spread * rng.uniform(-1, 1)) for p in known}
            if self.budget.over():
                break
            instance = repriced(self.plan, factors)
            share = 1 / (count - index + 1)
            found.append(self.judge.judge(instance, factors, self.budget, share))
        return tuple(found)

    def refined(self, singles: Sequence[Single]) -> tuple[Single, ...]:
        """With the way to every change halved as long as time is left."""
        return tuple(
            replace(
                one,
                lower=self._halved(one.parameter.name, one.lower),
                higher=self._halved(one.parameter.name, one.higher),
            )
            for one in singles
        )

    def _halved(self, name: str, side: Side | None) -> Side | None:
        if side is None or side.end.verdict not in (CHANGES, UNFIT):
            return side
        same = 0.0 if self.proved else None
        low, changes = 0.0, side.end.factors[name] - 1
        for _ in range(HALVINGS):
            if self.budget.over():
                break
            middle = (low + changes) / 2
            verdict = self._verdict({name: 1 + middle})
            if verdict in (CHANGES, UNFIT):
                changes = middle
                continue
            low = middle
            same = middle if verdict == SAME else same
        return replace(side, same_at=same, changes_at=changes)

    def _verdict(self, factors: dict[str, float]) -> str:
        """Without a solve where a plan known already is better."""
        instance = repriced(self.plan, factors)
        if self.judge.changes(instance):
            return CHANGES
        return self.judge.judge(instance, factors, self.budget, 0.2).verdict
