"""What the solves of one comparison share without being unfair.

A formulation starts from its own plans for the other objectives. Bounds hold for all formulations:
once a solve's plan meets a bound that any row proved, for its own objective or for one that never
exceeds it, the solve gets a little time to prove the same and is then ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from formulations import Instance, Outcome, Settings
from formulations.result.check import check
from formulations.result.outcome import StoppedBy
from formulations.result.placement import Placement
from formulations.search.context import Either
from formulations.settings import News, TracePoint
from scenarios.batch.curves import BELOW, LowerBound

ENDED = "its plan met a bound that another row proved, so it was ended"
#: How long such a solve goes on: a share of its time limit, capped in seconds.
OWN_PROOF, MOST = 0.2, 2.0


@dataclass
class Shared:
    """The plans and bounds of the rows so far."""

    plans: dict[str, list[Placement]] = field(default_factory=dict)
    """Plans by formulation."""
    bounds: dict[str, list[LowerBound]] = field(default_factory=dict)
    """Integer-derived bounds by objective, including those on lower objectives."""

    def bound(self, objective: str) -> int | None:
        """The largest known bound on an objective."""
        return max((each.bound for each in self.bounds.get(objective, [])), default=None)

    def take(self, name: str, instance: Instance, outcome: Outcome) -> None:
        """Add a row's plan and bound."""
        if outcome.placement is not None and check(instance, outcome.placement).feasible:
            self.plans.setdefault(name, []).append(outcome.placement)
        source, asked = outcome.bound_source, instance.objective.value
        if outcome.bound is None or source is None or not source.exact:
            return
        self.bounds.setdefault(asked, []).append(LowerBound(outcome.bound, source.method, True))
        for above, lower in BELOW.items():
            if asked in lower:
                by = f"{source.method} for {asked}, which never exceeds it,"
                self.bounds.setdefault(above, []).append(LowerBound(outcome.bound, by, True))

    def settings(self, name: str, instance: Instance, settings: Settings) -> Settings:
        """Settings for the next row, with the plan to start from and the condition to end."""
        known = self.bound(instance.objective.value)
        hint = _best(instance, self.plans.get(name, ())) or settings.hint
        if known is None:
            return replace(settings, hint=hint)
        own = min(MOST, OWN_PROOF * (settings.time_limit or MOST / OWN_PROOF))
        met, tell = _Met(known, own), settings.on_progress

        def note(point: News) -> None:
            met.see(point)
            if tell is not None:
                tell(point)

        stop = Either(settings.stop, met.ends)
        return replace(settings, hint=hint, stop=stop, on_progress=note)


@dataclass
class _Met:
    """Watches for a plan that meets a bound, and ends its solve some seconds later."""

    bound: int
    seconds: float
    since: float = inf

    def see(self, point: TracePoint) -> None:
        if point.objective is not None and point.objective <= self.bound:
            self.since = min(self.since, time.monotonic())

    def ends(self) -> bool:
        return time.monotonic() > self.since + self.seconds


def ended(outcome: Outcome, stopped: bool) -> Outcome:
    """The outcome of a row, with a note if another row's bound ended it.

    Parameters
    ----------
    stopped : bool
        Whether the caller stopped the comparison.
    """
    if outcome.stopped_by != StoppedBy.INTERRUPTED or stopped:
        return outcome
    note = "; ".join(filter(None, (outcome.note, ENDED)))
    return outcome.with_(stopped_by=StoppedBy.EXHAUSTED, note=note)


def _best(instance: Instance, plans: Sequence[Placement]) -> Placement | None:
    kind = instance.objective.value
    return min(plans, key=lambda plan: check(instance, plan).objectives[kind], default=None)
