"""Pick by shape: the exact model where only options are chosen, else bounds and search together.

Where every shard's place is fixed, ``cpsat`` proves thousands of tables in seconds. Where shards
have a choice of place, ``scale`` starts: its bounds and option filter let the exact model, which it
runs too, finish what it could not start. A small instance under ``step_time`` that it leaves open
goes on in ``cpsat`` from the best plan: with several phases the pooled bounds are weak and the
exact model's own are not. What is left of the time goes into polishing the plan.
"""

from __future__ import annotations

from dataclasses import replace

from formulations import cpsat, scale
from formulations.cpsat_model.finish import polished
from formulations.instance import Instance, Objective
from formulations.outcome import Outcome, Status, found
from formulations.presolve import Presolved, placement_variables, presolve
from formulations.settings import Clock, Settings

#: Placement variables up to which the plan is polished in one exact model.
POLISH_UP_TO = 20_000
#: Share of the time limit kept for polishing, and the most seconds of it.
KEEP, MOST = 0.08, 5.0
#: Placement variables up to which ``cpsat`` goes on under ``step_time``, and its share of the time.
EXACT_UP_TO, EXACT_SHARE = 10_000, 0.55

#: Those of both; each reads its own.
OPTIONS = {**cpsat.OPTIONS, **scale.OPTIONS}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve with ``cpsat``, or with ``scale`` and then ``cpsat``; see ``formulations.solve``."""
    presolved = presolve(instance)
    variables = placement_variables(instance, presolved)
    if variables == 0:
        return cpsat.solve(instance, settings, clock)
    timed = settings.work_limit is None
    polish = settings.polish and timed and variables <= POLISH_UP_TO
    small = timed and instance.objective == Objective.STEP_TIME and variables <= EXACT_UP_TO
    limit = settings.time_limit or 0.0
    with clock.holding_back(min(MOST, KEEP * limit) if polish else 0.0):
        with clock.holding_back(EXACT_SHARE * limit if small else 0.0):
            outcome = scale.solve(instance, settings, clock)
        if small and outcome.status in (Status.FEASIBLE, Status.UNKNOWN) and not clock.over():
            outcome = _continued(instance, outcome, settings, clock)
    if polish and not clock.over():
        outcome = _polished(instance, presolved, outcome, settings, clock)
    return outcome


def _continued(instance: Instance, before: Outcome, settings: Settings, clock: Clock) -> Outcome:
    """The exact model from the best plan so far; the better plan and the better bound of both."""
    hint = before.placement if before.placement is not None else settings.hint
    after = cpsat.solve(instance, replace(settings, hint=hint, polish=False), clock)
    if after.status == Status.INFEASIBLE or before.bound is None:
        return after
    if after.bound is not None and after.bound >= before.bound:
        return after
    if after.placement is None:
        return before
    return found(
        instance, "auto", after.placement, after.stopped_by, before.bound, before.bound_source,
        certificate=before.certificate, certified_bound=before.certified_bound,
        detail=before.detail,
    )  # fmt: skip


def _polished(
    instance: Instance, presolved: Presolved, outcome: Outcome, settings: Settings, clock: Clock
) -> Outcome:
    if outcome.placement is None or outcome.objective is None:
        return outcome
    plan = polished(instance, presolved, outcome.placement, settings, clock)
    better = found(instance, "auto", plan, outcome.stopped_by, outcome.bound, outcome.bound_source)
    if better.objective is None or better.objective > outcome.objective:
        return outcome
    return outcome.with_(
        placement=plan, objective=better.objective, objectives=better.objectives,
        status=better.status, stopped_by=better.stopped_by,
    )  # fmt: skip
