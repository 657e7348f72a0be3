"""The best of several Instances with the same objective, sharing bounds.

Each first gets a cheap bound. Then they are solved: the first one first, as its plan is the
yardstick for the others, then the others by ascending bound. The search ends when certificates
prove that no other Instance has a plan better than the best known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from formulations import Instance, Outcome, Settings, StoppedBy, solve
from formulations.proof.prove import prove
from formulations.result.certify import with_certificate
from formulations.result.outcome import Status, nothing
from formulations.search.context import Either
from formulations.settings import News
from milp_planner.plans.divisions import best_cost

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

    @property
    def bound(self) -> int:
        """Certified lower bound; 0 if none is known."""
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
