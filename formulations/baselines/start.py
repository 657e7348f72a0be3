"""A plan to start from, where the caller gave none."""

from __future__ import annotations

from dataclasses import replace

from formulations.clock import Clock
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance
from formulations.result.placement import Placement
from formulations.settings import Settings

#: The greedy start may take this share of the time left, and at most so many seconds.
SHARE, MOST = 0.1, 5.0
#: Proposals placed that count as one unit of work.
PROPOSALS = 100


def starting_plan(instance: Instance, settings: Settings, clock: Clock) -> Placement | None:
    """The greedy heuristic's plan; None where it finds none or does not cover the instance.

    CP-SAT itself may need tens of seconds for a first plan once many shards choose their rank.
    """
    from formulations.baselines.greedy import solve

    amount = min(MOST, SHARE * clock.remaining())
    if clock.counts:
        quick = replace(settings, time_limit=None, work_limit=max(1.0, amount * PROPOSALS))
    else:
        quick = replace(settings, time_limit=amount)
    quick = replace(quick, options={}, on_progress=None, hint=None)
    own = Clock(quick)
    try:
        return solve(instance, quick, own).placement
    except UnsupportedInstance:
        return None
    finally:
        clock.spend(own.work / PROPOSALS)
