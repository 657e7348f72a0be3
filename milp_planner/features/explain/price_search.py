"""Prices changed one at a time, all at once, and halfway to where the plan changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations import Instance
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.perturb import Parameter, repriced, same_prices
from milp_planner.features.explain.trial import CHANGES, SAME, UNFIT, Judge, Trial
from milp_planner.plans.placement import Plan

#: Halvings of the way to a change, so that it is known to 1/16 of the spread.
HALVINGS = 4


@dataclass(frozen=True)
class Side:
    """One parameter lowered, or raised, alone.

    Attributes
    ----------
    end : Trial
        At the end of its spread.
    same_at, changes_at : float or None
        Relative changes (−0.1: 10% less): the largest tried before ``changes_at`` at which the plan
        is proved best, and the smallest tried at which it changes or no longer fits. None where
        that is not known, or ``end`` shows no change; not all between was tried.
    """

    end: Trial
    same_at: float | None = None
    changes_at: float | None = None


@dataclass(frozen=True)
class Single:
    """One parameter, the others as the profile has them; None: no price of any option changes."""

    parameter: Parameter
    lower: Side | None
    higher: Side | None


@dataclass
class Search:
    """The solves, sharing one budget.

    Attributes
    ----------
    plan : Plan
    judge : Judge
    budget : Budget
    here : Instance
        At the prices as they are.
    proved : bool
        Whether the plan is proved best there.
    """

    plan: Plan
    judge: Judge
    budget: Budget
    here: Instance
    proved: bool

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
