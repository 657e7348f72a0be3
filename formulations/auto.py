"""The default: the exact model where it can prove, beside bounds and search.

Where every shard's place is fixed, ``cpsat`` proves thousands of tables in seconds and runs alone.
Small instances go to the conductor (:mod:`formulations.conduct.conductor`), where the exact model
runs from the first second beside compiled search, and so do the largest, where ``scale`` is slow;
those in between to ``scale``, then, from its plan, to the conductor, as neither is best everywhere
(docs/scale.md). What is left of the time goes into polishing the plan.
"""

from __future__ import annotations

from dataclasses import replace

from formulations import exact, scale
from formulations.clock import Clock
from formulations.conduct.conductor import conduct
from formulations.conduct.finish import prepare, ready
from formulations.instance import Instance
from formulations.polish import polished
from formulations.presolve import Presolved, placement_variables, presolve
from formulations.result.outcome import Outcome, Status, with_plan
from formulations.settings import Settings

#: Placement variables up to which the conductor is asked alone: about 50 tables on 8 ranks.
SMALL = 2_000
#: Beyond this many ``scale`` takes minutes for a first plan that annealing has in seconds.
LARGE = 1_000_000
#: Placement variables up to which the plan is polished in one exact model.
POLISH_UP_TO = 20_000
#: Share of the time limit that the conductor has after ``scale``, from its plan.
CONDUCTED = 0.5
#: Share of the time left that may go into waiting for the compiler, once on a machine.
WAIT = 0.4
#: Share of the time limit kept for polishing, and the most seconds of it.
KEEP, MOST = 0.08, 5.0

#: Seconds an option for what comes after the search, most of it the certificate's check; and the
#: largest share of the time limit for it.
AFTERWARDS, MOST_AFTERWARDS = 1e-4, 0.2

#: Those of both; each reads its own.
OPTIONS = {**exact.OPTIONS, **scale.OPTIONS}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve with ``cpsat`` or with everything together; see ``formulations.solve``."""
    presolved = presolve(instance)
    variables = placement_variables(instance, presolved)
    if variables == 0:
        return exact.solve(instance, settings, clock)
    timed = settings.work_limit is None and settings.polish
    limit = settings.time_limit or 0.0
    kept = min(MOST, KEEP * limit) if timed else 0.0
    if timed and settings.certificate:
        kept += min(AFTERWARDS * instance.num_options, MOST_AFTERWARDS * limit)
    with clock.holding_back(kept):
        if not SMALL < variables <= LARGE:
            outcome = conduct(instance, settings, clock, "auto")
        else:
            outcome = _at_scale(instance, settings, clock, timed)
    if timed and variables <= POLISH_UP_TO and not clock.over():
        outcome = _polished(instance, presolved, outcome, settings, clock)
    return outcome


def _at_scale(instance: Instance, settings: Settings, clock: Clock, timed: bool) -> Outcome:
    """``scale``, then the conductor."""
    compiling = prepare() if timed else None
    held = CONDUCTED * (settings.time_limit or 0.0) if timed else 0.0
    try:
        with clock.holding_back(held):
            outcome = scale.solve(instance, settings, clock)
    finally:
        until = clock.now() + clock.share(WAIT)
        loaded = ready(compiling, lambda: clock.now() < until and not clock.interrupted())
    open_ = outcome.status in (Status.FEASIBLE, Status.UNKNOWN)
    if loaded and open_ and not clock.over():
        return _conducted(instance, outcome, settings, clock)
    return outcome


def _conducted(instance: Instance, before: Outcome, settings: Settings, clock: Clock) -> Outcome:
    """The conductor from the best plan and bound so far, and with the certificate at hand."""
    hint = before.placement if before.placement is not None else settings.hint
    after = conduct(instance, replace(settings, hint=hint), clock, "auto", before)
    if after.certificate is None and before.certificate is not None:
        after = after.with_(certificate=before.certificate, certified_bound=before.certified_bound)
    return after


def _polished(
    instance: Instance, presolved: Presolved, outcome: Outcome, settings: Settings, clock: Clock
) -> Outcome:
    if outcome.placement is None or outcome.objective is None:
        return outcome
    plan = polished(instance, presolved, outcome.placement, settings, clock)
    return with_plan(instance, outcome, plan, outcome.objective)
