"""How wrong may a price be before the plan changes, and what would keeping the plan cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from formulations import Instance
from formulations.capacity.budget import Budget
from milp_planner.errors import BadInput
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
    """The effect of wrong prices on a plan."""

    objective_kind: str
    time_unit: str
    now: int
    """Objective of the plan at the unchanged prices."""
    bound: int | None
    """Lower bound on every plan at the unchanged prices."""
    better: int | None
    """Objective at the unchanged prices of the best plan found, if it beats the plan there, too;
    such a plan is no sign of sensitivity."""
    assumed: float
    """Spread of the parameters for which the profile gives none."""
    seed: int
    asked: int
    """Seed of the draws, and the number requested; fewer were made if time ran out."""
    singles: tuple[Single, ...]
    untried: tuple[str, ...]
    """Parameters not tried for lack of time."""
    draws: tuple[Trial, ...]
    """Draws of all parameters at once, each uniform within its spread."""

    @property
    def summary(self) -> Summary:
        """Counts and regrets of the draws."""
        return summary_of(self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with the summary."""
        return asdict(self) | {"summary": self.summary.to_dict()}


def sensitivity(
    plan: Plan, budget: Budget, *, assumed: float = 0.2, draws: int = 20
) -> SensitivityInfo:
    """Change the prices within their spread, solve again, and compare.

    The spread is ``assumed`` where the profile gives none. Each of ``draws`` draws changes all
    parameters at once. BadInput when the plan places nothing, when its prices come from elsewhere,
    or when the spread or the number of draws is out of range.
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
    """The Instance at the unchanged prices: the plan's own if this version prices the same."""
    again = repriced(plan, {})
    return plan.instance if same_prices(again, plan.instance) else again


def _bound(plan: Plan, here: Instance, budget: Budget, others: int) -> int | None:
    """Bound at the unchanged prices: the plan's own if its Instance is unchanged."""
    if here is plan.instance and plan.outcome.proved_bound is not None:
        return plan.outcome.proved_bound
    return budget.solve(here, 1 / (others + 1), plan.outcome.placement).proved_bound


#: Bisection steps towards a change, which locate it to 1/16 of the spread.
HALVINGS = 4


@dataclass(frozen=True)
class Side:
    """One parameter lowered, or raised, alone."""

    end: Trial
    """The trial at the end of the spread."""
    same_at: float | None = None
    changes_at: float | None = None
    """Relative changes (−0.1: 10% less): the largest tried before ``changes_at`` at which the plan
    is proved best, and the smallest tried at which it changes or no longer fits. None where
    unknown, or where ``end`` shows no change; not every value between them was tried."""


@dataclass(frozen=True)
class Single:
    """One parameter changed alone; a side is None when it changes no option's price."""

    parameter: Parameter
    lower: Side | None
    higher: Side | None


@dataclass
class Search:
    """Runs all solves within one budget."""

    plan: Plan
    judge: Judge
    budget: Budget
    here: Instance
    """The Instance at the unchanged prices."""
    proved: bool
    """Whether the plan is proved best at the unchanged prices."""

    def singles(
        self, known: Sequence[Parameter], budget: Budget
    ) -> tuple[tuple[Single, ...], tuple[str, ...]]:
        """Try both ends of every parameter; also the names of those not tried for lack of time."""
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
        """Change all parameters at once, in as many draws as time allows."""
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
        """Bisect towards every change as long as time is left."""
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
        """The verdict, without a solve where a known plan is better already."""
        instance = repriced(self.plan, factors)
        if self.judge.changes(instance):
            return CHANGES
        return self.judge.judge(instance, factors, self.budget, 0.2).verdict
