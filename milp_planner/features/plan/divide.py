"""The division into sharding groups that is best, chosen together with the plan.

Every division is an Instance of its own, with the same objective. A bound on each comes first and
is cheap. Then they are solved, the lowest bound first, until a certificate says that none of their
plans beats the best one known; that of the best division is made again with all settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from formulations import Outcome, Settings, StoppedBy, solve
from formulations.proof.prove import prove
from formulations.result.certify import with_certificate
from formulations.result.outcome import Status, nothing
from formulations.search.context import Either
from formulations.settings import News
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import Compiled, compile_for
from milp_planner.plans.divisions import Division, Divisions, best_cost, groups_of, words_of
from milp_planner.plans.placement import Plan, decode

#: Of the time: for first bounds, and for the best division once more.
BOUNDING, AGAIN = 0.15, 0.3
#: Seconds of a first bound at most; a certificate for each is looked for as long again.
MOST_SECONDS = 5.0


@dataclass(eq=False)
class Try:
    """One division while it is judged."""

    group: Cluster
    compiled: Compiled | None
    refused: str
    outcome: Outcome

    @property
    def bound(self) -> int:
        """No plan costs less, certified; 0 where nothing is known."""
        return self.outcome.certified_bound or 0

    @property
    def best(self) -> int | None:
        """What its best plan costs, goals aside."""
        return best_cost(self.outcome)

    def open(self, best: int | None) -> bool:
        """Whether it may still hold a better plan."""
        over = self.outcome.status == Status.INFEASIBLE or self.compiled is None
        return not over and (best is None or self.bound < best)


def divided(
    model: Model,
    cluster: Cluster,
    formulation: str,
    objective: str,
    settings: Settings,
    told: Callable[[str], None],
    planned: Callable[[Compiled, str, Settings], Outcome],
) -> Plan:
    """The best plan over all divisions that a cluster leaves open.

    Parameters
    ----------
    model, cluster
        The latter with a ``two_d`` that leaves something open.
    formulation, objective, settings
        As of a plan; a time or work limit is for all of it.
    told : callable
        Told in words which division is looked at.
    planned : callable
        Makes the outcome of one.

    Returns
    -------
    Plan
        Of the best division, with ``divisions``.

    Raises
    ------
    BadInput
        For the objective ``total``, which counts one group; where no division can be priced.
    """
    if objective == "total":
        raise BadInput(
            "objective total counts the ranks of one sharding group; allowed where two_d leaves "
            "the group open: step_time or busiest_rank"
        )
    tries = [_try(model, group, objective) for group in groups_of(cluster)]
    priced = [each for each in tries if each.compiled is not None]
    if not priced:
        raise BadInput(tries[0].refused)
    budget = _Budget(settings, len(priced))
    for each in priced:
        told(f"bounding {words_of(each.group)}")
        _bound(each, budget.bounding, None)
    best: int | None = None
    order = sorted(priced, key=lambda each: each.bound)
    for index, each in enumerate(order):
        if each.open(best) and not settings.stop.is_set():
            told(words_of(each.group))
            if best is not None:
                _bound(each, budget.bounding, best)
            if each.open(best):
                left = sum(other.open(best) for other in order[index:])
                _solve(each, formulation, budget.of(left), best)
            best = min((b for b in (best, each.best) if b is not None), default=None)
    chosen = min(priced, key=lambda each: (each.best is None, each.best or 0))
    told(words_of(chosen.group))
    plan = _again(chosen, planned, formulation, budget.rest(chosen.outcome))
    others = tuple(_division(each) for each in tries if each is not chosen)
    assert cluster.two_d is not None
    return replace(plan, divisions=Divisions(cluster.two_d, others))


def _again(
    chosen: Try,
    planned: Callable[[Compiled, str, Settings], Outcome],
    formulation: str,
    settings: Settings,
) -> Plan:
    """The plan of the best division with all settings, or as it was where time was up."""
    compiled, before = chosen.compiled, chosen.outcome
    assert compiled is not None
    outcome = planned(compiled, formulation, settings)
    if outcome.placement is None and before.placement is not None:
        outcome = before
    if before.certificate is not None and outcome.placement is not None:
        outcome = with_certificate(compiled.instance, outcome, before.certificate)
    return decode(compiled.options, compiled.instance, outcome)


class _Budget:
    """Settings of the parts of a limit."""

    def __init__(self, settings: Settings, count: int) -> None:
        self._settings, self._start, limit = settings, time.monotonic(), settings.time_limit
        self.bounding = None if limit is None else min(MOST_SECONDS, BOUNDING * limit / count)
        if settings.work_limit is not None:
            self._settings = replace(settings, work_limit=settings.work_limit / (count + 1))

    def of(self, left: int) -> Settings:
        """For one of so many that are left: twice its share, so that the first get more."""
        limit = self._settings.time_limit
        if limit is None:
            return self._settings
        share = max(0.0, (1 - AGAIN) * limit - self._spent()) * 2 / (left + 1)
        return replace(self._settings, time_limit=max(share, self.bounding or 0.0))

    def rest(self, known: Outcome) -> Settings:
        """For the best, from the plan that is known."""
        limit = self._settings.time_limit
        left = None if limit is None else max(limit - self._spent(), AGAIN * limit / 2)
        hint = known.placement or self._settings.hint
        return replace(self._settings, time_limit=left, hint=hint)

    def _spent(self) -> float:
        return time.monotonic() - self._start


def _try(model: Model, group: Cluster, objective: str) -> Try:
    outcome = nothing("", StoppedBy.EXHAUSTED)
    try:
        return Try(group, compile_for(model, group, objective), "", outcome)
    except BadInput as error:
        return Try(group, None, str(error), outcome)


def _bound(each: Try, seconds: float | None, best: int | None) -> None:
    """A certificate found without a plan, at the target of another division's best plan."""
    assert each.compiled is not None
    instance = each.compiled.instance
    found = prove(instance, best, seconds)
    if found is not None:
        each.outcome = with_certificate(instance, each.outcome, found)


def _solve(each: Try, formulation: str, settings: Settings, best: int | None) -> None:
    """Solve a division until nothing in it can be better than the best plan of the others."""
    assert each.compiled is not None
    beaten = False

    def look(news: News) -> None:
        nonlocal beaten
        beaten = beaten or (
            best is not None and news.certified is not None and news.certified >= best
        )
        if settings.on_progress is not None:
            settings.on_progress(news)

    stop = Either(settings.stop, lambda: beaten)
    watched = replace(settings, stop=stop, on_progress=look, polish=False)
    instance, before = each.compiled.instance, each.outcome.certificate
    each.outcome = solve(instance, formulation, watched)
    if before is not None and each.outcome.status != Status.INFEASIBLE:
        each.outcome = with_certificate(instance, each.outcome, before)


def _division(each: Try) -> Division:
    if each.compiled is None:
        return Division(each.group, None, None, each.refused)
    return Division(each.group, each.compiled.instance, each.outcome)
