"""Which constraints leave an option no plan at all."""

from __future__ import annotations

from dataclasses import replace

from formulations import Instance
from formulations.bounds.own import usable
from formulations.diagnose.ask import Asker
from formulations.diagnose.conflict import conflict
from formulations.instance import Pin
from milp_planner.features.explain.budget import Budget

#: Options of an instance above which no conflict is searched: each step would take too long.
MOST_OPTIONS = 20_000


def forbidden_by(instance: Instance, option: int, budget: Budget, share: float) -> tuple[str, ...]:
    """Names of the constraints in a smallest conflict with the option.

    Parameters
    ----------
    instance : Instance
    option : int
        Proved to be in no plan.
    budget : Budget
    share : float
        Of the time left.

    Returns
    -------
    tuple of str
        Resource names, ``fusion``, ``pins``, ``forbidden``, ``moves``; empty when the time did
        not suffice.
    """
    if not instance.allowed[option]:
        pinned = any(p.table == int(instance.table_of[option]) for p in instance.pins)
        return ("pins",) if pinned else ("forbidden",)
    alone = _alone(instance, option)
    if alone:
        return alone
    if budget.over() or instance.num_options > MOST_OPTIONS:
        return ()
    left = budget.left()
    settings = replace(
        budget.settings, time_limit=None if left is None else left * share, on_progress=None
    )
    table = int(instance.table_of[option])
    others = tuple((table, o) for o in instance.options_of(table) if o != option)
    kept = tuple(f for f in instance.forbidden if f[0] != table)
    found = conflict(
        replace(instance, pins=instance.pins, forbidden=kept + others), Asker(settings)
    )
    if found is None:
        return ()
    # The table's other options are forbidden by the question, not by the instance.
    ours = any(f[0] != table for f in instance.forbidden)
    return tuple(c for c in found.constraints if c != "forbidden" or ours)


def _alone(instance: Instance, option: int) -> tuple[str, ...]:
    """Resources of which the option needs more than an empty cluster has."""
    table = int(instance.table_of[option])
    pins = (*(p for p in instance.pins if p.table != table), Pin(table, option))
    if usable(instance)[option]:
        return ()
    blamed = []
    for index, resource in enumerate(instance.resources):
        resources = list(instance.resources)
        rest = [
            r if i == index else replace(r, capacity=r.capacity * 0 + 2**60)
            for i, r in enumerate(resources)
        ]
        if not usable(replace(instance, resources=tuple(rest), pins=pins))[option]:
            blamed.append(resource.name)
    return tuple(blamed)
