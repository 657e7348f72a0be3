"""Solve a diagnostic Instance within what is left of a time budget."""

from __future__ import annotations

import time
from dataclasses import replace

from formulations.diagnose.questions import without_costs
from formulations.instance import Instance
from formulations.presolve import placement_variables
from formulations.result.outcome import Outcome, Status, StoppedBy, nothing
from formulations.settings import Settings
from formulations.solve import solve

#: Placement variables up to which the exact model alone is asked. Fewer than ``auto`` takes: the
#: questions have a short time each, and most are decided by a bound and a plan that meets it.
EXACT_ALONE = 2_000


class Asker:
    """Solves questions with one formulation, sharing one time limit.

    Parameters
    ----------
    settings : Settings
        ``time_limit`` covers all questions asked through this object.
    formulation : str
        ``auto``: exact for small questions, and bounds with plans for large ones.
    """

    def __init__(self, settings: Settings, formulation: str = "auto") -> None:
        self._settings = settings
        self._formulation = formulation
        limit = settings.time_limit
        self._end = None if limit is None else time.monotonic() + limit

    def remaining(self) -> float | None:
        """Seconds left; None without a limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def over(self) -> bool:
        """Whether time is up or the caller asked to stop."""
        return self._settings.stop.is_set() or self.remaining() == 0.0

    def ask(self, instance: Instance, share: float = 1.0) -> Outcome:
        """Solve one question with at most a share of the time left.

        Polishing and certificates are left out: only the optimum of the question matters.
        """
        if self.over():
            stopped = self._settings.stop.is_set()
            return nothing("", StoppedBy.INTERRUPTED if stopped else StoppedBy.TIME_LIMIT)
        left = self.remaining()
        limit = None if left is None else max(0.05, left * share)
        settings = replace(
            self._settings, time_limit=limit, polish=False, certificate=False, hint=None,
            on_progress=None,
        )  # fmt: skip
        return solve(instance, self._choice(instance), settings)

    def _choice(self, instance: Instance) -> str:
        if self._formulation != "auto":
            return self._formulation
        return "cpsat" if placement_variables(instance) <= EXACT_ALONE else "scale"

    def fits(self, instance: Instance, share: float = 1.0) -> bool | None:
        """Whether any plan exists: True, False, or None when the limit left it open."""
        outcome = self.try_to_fit(instance, share)
        if outcome.placement is not None:
            return True
        return False if outcome.status == Status.INFEASIBLE else None

    def try_to_fit(self, instance: Instance, share: float = 1.0) -> Outcome:
        """Any plan of an instance, whatever it costs."""
        return self.ask(without_costs(instance), share)
