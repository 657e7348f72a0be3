"""How wrong may a price be before the plan changes, and what would keeping the plan cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from formulations import Instance, Placement, Status
from formulations.capacity.budget import Budget
from formulations.capacity.proofs import relaxed_bound, usable_certificate
from formulations.result.certificate import Certificate
from formulations.result.check import value_of
from milp_planner.errors import BadInput
from milp_planner.features.explain.perturb import Parameter, parameters, repriced, same_prices
from milp_planner.files import Facts
from milp_planner.plans.placement import Plan

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
    plan: Plan, budget: Budget, assumed: float = 0.2, draws: int = 20
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
