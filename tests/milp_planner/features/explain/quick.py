"""Shared by the tests of explanations: a small time budget and small instances."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from formulations import Instance, Objective, Outcome, Placement, Settings, solve
from formulations.capacity.budget import Budget
from formulations.instance import Current
from milp_planner.plans.placement import Plan
from tests.formulations.brute_force import Truth, brute_force
from tests.formulations.strategies import instances
from tests.milp_planner.features import plans

OBJECTIVES = (Objective.STEP_TIME, Objective.BUSIEST_RANK)


def quick(seconds: float = 60.0) -> Budget:
    """Enough time for any instance of these tests, one worker."""
    return Budget(Settings(time_limit=seconds, workers=1), "cpsat")


def as_plan(instance: Instance, outcome: Outcome | None = None) -> Plan:
    """A plan of an instance: the outcome, or what :func:`quick` finds."""
    outcome = outcome or solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    return replace(plans.small(), instance=instance, outcome=outcome)


def small(max_tables: int = 3, constraints: bool = False) -> st.SearchStrategy[Instance]:
    """Instances with at least one table and one resource on ranks or machines."""
    drawn = instances(
        OBJECTIVES, max_tables=max_tables, max_combinations=500, constraints=constraints
    )
    return drawn.filter(lambda i: bool(i.num_tables and i.resources))


def truth(instance: Instance) -> Truth:
    """The optimum by enumeration."""
    return brute_force(instance)


def in_production(instance: Instance, placement: Placement) -> Instance:
    """The instance with a placement as the plan in production."""
    now = tuple(
        Current(t, int(o), tuple(tuple(b) for b in placement.to_lists(t)))
        for t, o in enumerate(placement.options)
    )
    return replace(instance, current=now)


def first_of_each(instance: Instance) -> Placement | None:
    """A placement that may or may not fit: every table's last option at its first places."""
    from tests.formulations.brute_force import table_placements

    options, ranks = [], []
    for table in range(instance.num_tables):
        option = instance.options_of(table)[-1]
        options.append(option)
        placed = next(iter(table_placements(instance, option)), None)
        if placed is None:
            return None
        ranks.append([np.asarray(block, dtype=np.int64) for block in placed])
    return Placement(np.asarray(options, dtype=np.int64), ranks)
