"""A plan to start from, where the caller gave none."""

from __future__ import annotations

from dataclasses import replace

from formulations.errors import UnsupportedInstance
from formulations.instance import Instance
from formulations.placement import Placement
from formulations.settings import Clock, Settings

#: The greedy start may take this share of the time left, and at most so many seconds.
SHARE, MOST = 0.1, 5.0


def starting_plan(instance: Instance, settings: Settings, clock: Clock) -> Placement | None:
    """The greedy heuristic's plan; None where it finds none or does not cover the instance.

    CP-SAT itself may need tens of seconds for a first plan once many shards choose their rank.
    """
    from formulations.greedy import solve

    seconds = min(MOST, SHARE * clock.remaining())
    quick = replace(
        settings, time_limit=seconds, work_limit=None, options={}, on_progress=None, hint=None
    )
    try:
        return solve(instance, quick, Clock(quick)).placement
    except UnsupportedInstance:
        return None
