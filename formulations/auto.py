"""The default: the exact model where it can prove, beside bounds and search.

Where every shard's place is fixed, ``cpsat`` proves thousands of tables in seconds and runs alone.
Everything else goes to the conductor (:mod:`formulations.search.conductor`), where, on small
instances, the exact model runs from the first second beside compiled search. What is left of the
time goes into polishing the plan.
"""

from __future__ import annotations

from formulations import exact, scale
from formulations.clock import Clock
from formulations.instance import Instance
from formulations.polish import polished
from formulations.presolve import placement_variables, presolve
from formulations.result.certify import kept_to_prove
from formulations.result.outcome import Outcome, with_plan
from formulations.result.verify import CHECKING, READING
from formulations.search.conductor import conduct
from formulations.settings import Settings

#: Placement variables up to which the plan is polished in one exact model.
POLISH_UP_TO = 20_000
#: Share of the time limit kept for polishing, and the most seconds of it.
KEEP, MOST = 0.08, 5.0
#: Seconds an option for the finishing pass and, where no side of the search does it in time, the
#: check of its certificate; and the largest share of the time limit for these.
FINISHING, CHECK, MOST_AFTERWARDS = 2e-5, READING + CHECKING, 0.3

#: Those of both; each reads its own.
OPTIONS = {**exact.OPTIONS, **scale.OPTIONS}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve with ``cpsat`` or with everything together; see ``formulations.solve``."""
    presolved = presolve(instance)
    variables = placement_variables(instance, presolved)
    if variables == 0:
        with clock.holding_back(kept_to_prove(instance, settings)):
            return exact.solve(instance, settings, clock)
    timed = settings.work_limit is None and settings.polish
    limit = settings.time_limit or 0.0
    polishes = timed and variables <= POLISH_UP_TO
    kept = min(MOST, KEEP * limit) if polishes else 0.0
    if timed and settings.certificate:
        each = FINISHING + (CHECK if settings.workers == 1 else 0.0)
        kept += min(each * instance.num_options, MOST_AFTERWARDS * limit)
    with clock.holding_back(kept):
        outcome = conduct(instance, settings, clock, "auto")
    if not polishes or outcome.placement is None or clock.over():
        return outcome
    plan = polished(instance, presolved, outcome.placement, settings, clock)
    return with_plan(instance, outcome, plan, outcome.objective)
