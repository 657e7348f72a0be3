"""Choose the best division into sharding groups together with the plan.

Every division is an Instance of its own with the same objective, and gets a cheap bound. Then the
first one is solved, as its plan is the yardstick for the others, and then the others by ascending
bound, until certificates prove that no other one has a plan better than the best known. The best
division's Instance is re-solved with the full settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from formulations import Instance, Outcome, Settings, StoppedBy, solve
from formulations.evidence.certify import with_certificate
from formulations.proof.prove import prove
from formulations.result.outcome import Status, nothing
from formulations.search.context import Either
from formulations.settings import News
from milp_planner.drawing.units import show_gap
from milp_planner.errors import BadInput
from milp_planner.features.plan.one_ratio import decoded
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import Compiled, compile_for
from milp_planner.plans.divisions import (
    Division,
    Divisions,
    best_cost,
    groups_of,
    least_elsewhere,
    words_of,
)
from milp_planner.plans.placement import Plan

#: Shares of the time: for first bounds, for the first solve, and for re-solving the best.
BOUNDING, FIRST, AGAIN = 0.15, 0.2, 0.3
#: Most seconds for a first bound, and again for a certificate at the best plan's objective.
MOST_SECONDS = 5.0


@dataclass(eq=False)
class Try:
    """One candidate Instance and its outcome so far."""

    words: str
    """Its name in messages."""
    instance: Instance | None
    """None if it could not be built."""
    refused: str = ""
    """Why it could not be built."""
    outcome: Outcome = field(default_factory=lambda: nothing("", StoppedBy.EXHAUSTED))
    """What its bounds and solves have found so far."""

    @property
    def bound(self) -> int:
        """Certified lower bound, in the Instance's time unit; 0 if none is known."""
        return self.outcome.certified_bound or 0

    @property
    def best(self) -> int | None:
        """Objective of its best plan, before goals."""
        return best_cost(self.outcome)

    def open(self, best: int | None) -> bool:
        """Whether it may still have a plan better than ``best``."""
        over = self.outcome.status == Status.INFEASIBLE or self.instance is None
        return not over and (best is None or self.bound < best)


def best_of(
    tries: Sequence[Try], formulation: str, settings: Settings, report: Callable[[str], None]
) -> tuple[Try, Settings]:
    """The Instance with the best plan, and settings for re-solving it from that plan.

    Parameters
    ----------
    tries : sequence of Try
        At least one must have an Instance; their outcomes are filled in.
    formulation, settings
        As for one solve; a time or work limit covers all of them.
    report : callable
        Called with the name of each Instance before it is bounded or solved.
    """
    some = [each for each in tries if each.instance is not None]
    budget = _Budget(settings, len(some))
    for each in some:
        report(f"bounding {each.words}")
        _bound(each, budget.bounding, None)
    best: int | None = None
    order = [some[0], *sorted(some[1:], key=lambda each: each.bound)]
    for index, each in enumerate(order):
        if each.open(best) and not settings.stop.is_set():
            report(each.words)
            if best is not None:
                _bound(each, budget.bounding, best)
            if each.open(best):
                left = sum(other.open(best) for other in order[index:])
                _solve(each, formulation, budget.of(left, index == 0), best)
            best = min((b for b in (best, each.best) if b is not None), default=None)
    chosen = min(some, key=lambda each: (each.best is None, each.best or 0))
    report(chosen.words)
    return chosen, budget.rest(chosen.outcome)


def kept(chosen: Try, outcome: Outcome) -> Outcome:
    """The outcome of re-solving a Try: never worse than before, with the certificate it had."""
    before, instance = chosen.outcome, chosen.instance
    assert instance is not None
    if outcome.placement is None and before.placement is not None:
        return before
    if before.certificate is None or outcome.placement is None:
        return outcome
    return with_certificate(instance, outcome, before.certificate)


class _Budget:
    """Divides a time or work limit among the solves."""

    def __init__(self, settings: Settings, count: int) -> None:
        self._settings, self._start, limit = settings, time.monotonic(), settings.time_limit
        self.bounding = None if limit is None else min(MOST_SECONDS, BOUNDING * limit / count)
        if settings.work_limit is not None:
            self._settings = replace(settings, work_limit=settings.work_limit / (count + 1))

    def of(self, left: int, first: bool) -> Settings:
        """Settings for one of ``left`` solves: twice its share, so that earlier ones get more."""
        limit = self._settings.time_limit
        if limit is None:
            return self._settings
        share = max(0.0, (1 - AGAIN) * limit - self._spent()) * 2 / (left + 1)
        share = max(share, FIRST * limit if first else 0.0)
        return replace(self._settings, time_limit=max(share, self.bounding or 0.0))

    def rest(self, known: Outcome) -> Settings:
        """Settings for re-solving the best, starting from its known plan."""
        limit = self._settings.time_limit
        left = None if limit is None else max(limit - self._spent(), AGAIN * limit / 2)
        hint = known.placement or self._settings.hint
        return replace(self._settings, time_limit=left, hint=hint)

    def _spent(self) -> float:
        return time.monotonic() - self._start


def _bound(each: Try, seconds: float | None, best: int | None) -> None:
    """Look for a certificate without solving, with ``best`` as its target."""
    assert each.instance is not None
    found = prove(each.instance, best, seconds)
    if found is not None:
        each.outcome = with_certificate(each.instance, each.outcome, found)


def _solve(each: Try, formulation: str, settings: Settings, best: int | None) -> None:
    """Solve it until it is certified to have no plan better than ``best``."""
    assert each.instance is not None
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
    before = each.outcome.certificate
    each.outcome = solve(each.instance, formulation, watched)
    if before is not None and each.outcome.status != Status.INFEASIBLE:
        each.outcome = with_certificate(each.instance, each.outcome, before)


def divided(
    model: Model,
    cluster: Cluster,
    formulation: str,
    objective: str,
    settings: Settings,
    report: Callable[[str], None],
    planned: Callable[[Compiled, str, Settings], Outcome],
) -> Plan:
    """The best plan over all divisions that a cluster leaves open.

    Parameters
    ----------
    model, cluster
        The cluster's ``two_d`` must leave something open.
    formulation, objective, settings
        As for one plan; a time or work limit covers all divisions.
    report : callable
        Called with a description of each division before it is bounded or solved.
    planned : callable
        Solves the best division once more, with all settings.

    Returns
    -------
    Plan
        The best division's plan, with ``divisions``.

    Raises
    ------
    BadInput
        For the objective ``total``, which counts one group only; or if no division can be priced.
    """
    if objective == "total":
        raise BadInput(
            "objective total counts the ranks of one sharding group; allowed where two_d leaves "
            "the group open: step_time, pipelined_step or busiest_rank"
        )
    start, groups = time.monotonic(), [*groups_of(cluster)]
    tried = [_tried(model, group, objective) for group in groups]
    tries = [each for each, _ in tried]
    if all(each.instance is None for each in tries):
        raise BadInput(tries[0].refused)
    chosen, rest = best_of(tries, formulation, settings, report)
    compiled = tried[tries.index(chosen)][1]
    assert compiled is not None and cluster.two_d is not None
    outcome = kept(chosen, planned(compiled, formulation, rest))
    others = tuple(
        Division(group, each.instance, each.outcome if each.instance else None, each.refused)
        for group, each in zip(groups, tries, strict=True)
        if each is not chosen
    )
    divisions = Divisions(cluster.two_d, others)
    outcome = outcome.with_(note=note_of(outcome, divisions), seconds=time.monotonic() - start)
    return replace(decoded(compiled, outcome), divisions=divisions)


def note_of(outcome: Outcome, divisions: Divisions) -> str:
    """The outcome's note, with a warning if another division may have a better plan."""
    best, least = best_cost(outcome), least_elsewhere(divisions)
    if best is None or (least is not None and least >= best):
        return outcome.note
    share = "" if least is None else f", by at most {show_gap((best - least) / max(1, best))}"
    text = f"certified for this division alone: another one may hold a better plan{share}"
    return "; ".join(filter(None, (outcome.note, text)))


def _tried(model: Model, group: Cluster, objective: str) -> tuple[Try, Compiled | None]:
    try:
        compiled = compile_for(model, group, objective)
    except BadInput as error:
        return Try(words_of(group), None, str(error)), None
    return Try(words_of(group), compiled.instance), compiled
