"""Evidence before claims: no proof is handed out that something known contradicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from formulations.baselines.start import starting_plan
from formulations.clock import Clock
from formulations.instance import Instance
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status, found, nothing
from formulations.result.placement import Placement
from formulations.settings import Settings


def contradiction(
    instance: Instance, outcome: Outcome, settings: Settings, clock: Clock
) -> str | None:
    """What is known that an outcome's claims cannot be true beside.

    A bound is held against the outcome's own plan, the caller's, and the best that was reported on
    the way; so are the bounds reported on the way. That there is no plan is held against
    the same and against greedy's, unless a certificate proves it.

    Returns
    -------
    str or None
        A part of a sentence; None where nothing contradicts.
    """
    values = [point.objective for point in clock.trace if point.objective is not None]
    values += [value for _, value in _plans(instance, outcome, settings)]
    if outcome.status == Status.INFEASIBLE:
        if not values and outcome.certificate is None:
            values = _greedy(instance, settings, clock)
        return f"no plan was claimed to exist, one costs {min(values)}" if values else None
    bounds = [point.bound for point in clock.trace if point.bound is not None]
    bounds += [b for b in (outcome.bound, outcome.certified_bound) if b is not None]
    if not values or not bounds or max(bounds) <= min(values):
        return None
    return f"a bound of {max(bounds)} was claimed, a plan costs {min(values)}"


def best_plan(instance: Instance, outcome: Outcome, settings: Settings) -> Placement | None:
    """The cheaper of the outcome's plan and the caller's, as far as they pass the check."""
    plans = list(_plans(instance, outcome, settings))
    return min(plans, key=lambda plan: plan[1])[0] if plans else None


def without_claims(instance: Instance, outcome: Outcome, settings: Settings, why: str) -> Outcome:
    """The best plan at hand with nothing claimed of it, and a note that says why."""
    note = f"a solver's proof was dropped: {why}"
    rest: dict[str, Any] = {"solver": outcome.solver, "version": outcome.version, "note": note,
            "detail": outcome.detail}  # fmt: skip
    plan = best_plan(instance, outcome, settings)
    if plan is None:
        return nothing(outcome.formulation, outcome.stopped_by, **rest)
    return found(instance, outcome.formulation, plan, outcome.stopped_by, **rest)


def _plans(
    instance: Instance, outcome: Outcome, settings: Settings
) -> Iterator[tuple[Placement, int]]:
    for plan in (outcome.placement, settings.hint):
        if plan is not None and (verdict := check(instance, plan)).feasible:
            yield plan, verdict.objectives[instance.objective.value]


def _greedy(instance: Instance, settings: Settings, clock: Clock) -> list[int]:
    plan = starting_plan(instance, settings, clock)
    if plan is None:
        return []
    return [check(instance, plan).objectives[instance.objective.value]]
