"""One time limit shared by all solves of a question."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from formulations import registry
from formulations.instance import Instance, Objective
from formulations.presolve import placement_variables
from formulations.result.certificate import Certificate
from formulations.result.outcome import Outcome, Status, StoppedBy, nothing
from formulations.result.placement import Placement
from formulations.search.context import Either
from formulations.settings import News, Settings
from formulations.solve import solve

#: Least seconds for a solve, so that the last of many gets a useful time limit.
LEAST = 0.05
#: Up to this many placement variables, the exact model alone decides a yes-or-no question. That is
#: fewer than in ``auto``, because each question has little time, and most are decided by a bound
#: and a plan that meets it.
EXACT_ALONE = 2_000


class Budget:
    """Solves Instances with one formulation of the registry within one time limit.

    The settings' ``time_limit`` covers all solves through this object; no single solve takes more
    than ``each`` seconds. Outcomes carry certificates only with ``certificate=True``.
    """

    def __init__(
        self, settings: Settings | None = None, formulation: str = "auto",
        each: float | None = None, certificate: bool = False,
        decided: Callable[[News], bool] | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.each, self.certificate = settings or Settings(), each, certificate
        self._decided = decided
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
        return self._with(time_limit=None if left is None else max(0.1, left * share))

    def no_longer_than(self, seconds: float) -> Budget:
        """The same time left, with a limit in seconds on each solve."""
        return self._with(each=seconds, time_limit=self.left())

    def certifying(self, gap: float = 0.0) -> Budget:
        """The same time left, for solves that produce certificates and stop at ``gap``."""
        return self._with(certificate=True, time_limit=self.left(), gap=gap)

    def deciding(self, target: int | None) -> Budget:
        """The same time left, for solves that end as soon as a plan reaches a target (None: any
        plan), or a certificate shows that none does."""

        def decided(news: News) -> bool:
            value, bound = news.objective, news.certified
            if target is None:
                return value is not None
            return (value is not None and value <= target) or (bound is not None and bound > target)

        return self._with(time_limit=self.left(), decided=decided)

    def _with(
        self, each: float | None = None, certificate: bool = False,
        decided: Callable[[News], bool] | None = None, **changes: Any,
    ) -> Budget:  # fmt: skip
        settings = replace(self.settings, **changes)
        each = self.each if each is None else each
        certificate = certificate or self.certificate
        return Budget(settings, self.formulation, each, certificate, decided or self._decided)

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
        settings = replace(self.settings, hint=hint, prices=prices, certificate=self.certificate)
        if self._decided is not None:
            settings = _ending(settings, self._decided)
        return self._solved(instance, share, self.formulation, settings)

    def ask(self, instance: Instance, share: float = 1.0) -> Outcome:
        """Solve another instance that encodes a question, within a share of the time left.

        Certificates are left out: only the optimum matters. Of ``auto``'s two parts one is chosen,
        exact for small questions, and bounds with plans for large ones.
        """
        name = self.formulation
        if name == "auto":
            name = "cpsat" if placement_variables(instance) <= EXACT_ALONE else "scale"
        settings = replace(self.settings.for_another, certificate=False, on_progress=None)
        return self._solved(instance, share, name, settings)

    def _solved(
        self, instance: Instance, share: float, formulation: str, settings: Settings
    ) -> Outcome:
        if self.over():
            stopped = StoppedBy.INTERRUPTED if settings.stop.is_set() else StoppedBy.TIME_LIMIT
            return nothing(formulation, stopped, "no time was left for this solve")
        left = self.left()
        limit = None if left is None else max(LEAST, left * share)
        if self.each is not None:
            limit = self.each if limit is None else min(limit, self.each)
        return solve(instance, formulation, replace(settings, time_limit=limit, polish=False))

    def fits(self, instance: Instance, share: float = 1.0) -> bool | None:
        """Whether any plan exists: True, False, or None when the limit left it open."""
        outcome = self.try_to_fit(instance, share)
        if outcome.placement is not None:
            return True
        return False if outcome.status == Status.INFEASIBLE else None

    def try_to_fit(self, instance: Instance, share: float = 1.0) -> Outcome:
        """Any plan of an instance, whatever it costs."""
        return self.ask(without_costs(instance), share)


def _ending(settings: Settings, decided: Callable[[News], bool]) -> Settings:
    """The settings of a solve that ends once its news decide a question."""
    met = threading.Event()

    def see(news: News) -> None:
        if decided(news):
            met.set()
        if settings.on_progress is not None:
            settings.on_progress(news)

    return replace(settings, stop=Either(settings.stop, met.is_set), on_progress=see)


def without_costs(instance: Instance, phase: str = "none") -> Instance:
    """The same placements, all at no cost, under the objective ``total`` with one phase."""
    cost = np.zeros((len(instance.shard_repeat), 1), dtype=np.int64)
    return replace(instance, phases=(phase,), hidden=(), objective=Objective.TOTAL, shard_cost=cost)
