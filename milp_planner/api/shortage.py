"""An infeasible Outcome is an answer: why nothing fits, and the least that would."""

from __future__ import annotations

from dataclasses import replace

from formulations import Instance, Outcome, Settings, Status
from formulations.diagnose import diagnose

#: Seconds spent on the diagnosis at most, whatever the solve was given.
MOST_SECONDS = 60.0


def with_diagnosis(instance: Instance, outcome: Outcome, settings: Settings) -> Outcome:
    """An infeasible outcome with ``detail["diagnosis"]``; any other outcome unchanged.

    Its questions (least capacity of every resource, fewest tables to drop, a smallest conflict)
    are solved within the solve's own time limit again, a minute at most.
    """
    if outcome.status != Status.INFEASIBLE or settings.stop.is_set():
        return outcome
    limit = min(settings.time_limit or MOST_SECONDS, MOST_SECONDS)
    own = replace(settings, time_limit=limit, options={}, work_limit=None, hint=None)
    return outcome.with_(detail={**outcome.detail, "diagnosis": diagnose(instance, own).to_dict()})
