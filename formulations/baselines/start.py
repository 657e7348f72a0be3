"""Plans to start from, where the caller gave none: greedy's, and the one in production."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.clock import Clock
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance
from formulations.instance.seating import seated
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


def current_plan(instance: Instance) -> Placement | None:
    """The plan in production, where it covers every table and can still be."""
    if len(instance.current) != instance.num_tables or not instance.num_tables:
        return None
    now = sorted(instance.current, key=lambda c: c.table)
    ranks = [seated(instance, c.option, c.ranks) for c in now]
    if any(r is None for r in ranks):
        return None
    return Placement(
        np.asarray([c.option for c in now], dtype=np.int64),
        [[np.asarray(r, dtype=np.int64) for r in own or ()] for own in ranks],
    )
