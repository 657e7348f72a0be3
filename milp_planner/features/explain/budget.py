"""One time limit shared by all solves of a question."""

from __future__ import annotations

import time
from dataclasses import replace

from formulations import Instance, Outcome, Placement, Settings, StoppedBy, registry, solve
from formulations.result.outcome import nothing

#: Least seconds a solve gets, so that the last question of a grid is not asked in vain.
LEAST = 0.05


class Budget:
    """Solves Instances with one formulation within one time limit.

    Parameters
    ----------
    settings : Settings, optional
        Its ``time_limit`` covers everything asked through this object.
    formulation : str
        Any name of the registry; ``auto`` proves what can be proved.

    Raises
    ------
    InstanceError
        For an unknown formulation.
    """

    def __init__(self, settings: Settings | None = None, formulation: str = "auto") -> None:
        self.settings = settings or Settings()
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
        """A budget of its own with a share of the time left, at least 0.1 s."""
        left = self.left()
        limit = None if left is None else max(0.1, left * share)
        return Budget(replace(self.settings, time_limit=limit), self.formulation)

    def solve(
        self, instance: Instance, share: float = 1.0, hint: Placement | None = None
    ) -> Outcome:
        """Solve with at most a share of the time left; unknown when none is left.

        Polishing and certificates are left out: only objective and bound matter here.
        """
        if self.over():
            stopped = StoppedBy.INTERRUPTED if self.settings.stop.is_set() else StoppedBy.TIME_LIMIT
            return nothing(self.formulation, stopped, "no time was left for this solve")
        left = self.left()
        limit = None if left is None else max(LEAST, left * share)
        settings = replace(
            self.settings, time_limit=limit, hint=hint, polish=False, certificate=False
        )
        return solve(instance, self.formulation, settings)
