"""The change that would do, where a trainer would stop on a plan or run out of memory."""

from __future__ import annotations

from formulations import Settings
from milp_planner.drawing.units import show_cost
from milp_planner.errors import FallsShort
from milp_planner.integrations.replay import Trainer
from milp_planner.integrations.replay.search import Search, widened
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price

SECONDS = 5.0
"""Time for looking."""


def remedy(plan: Plan, name: str, trainer: Trainer) -> str:
    """Tables and types with which the trainer runs: one other than the plan's, or a few."""
    options = price(widened(plan.model, trainer), plan.cluster, plan.profile)
    instance = compile_instance(options, plan.instance.objective)
    otherwise = f"plan --for {name} looks for a plan that runs"
    try:
        search = Search(trainer, options, instance, Settings(time_limit=SECONDS))
    except FallsShort as error:
        return str(error)
    wanted = [options.index(t, placed.option) for t, placed in enumerate(plan.tables)]
    start = search.nearest(wanted)
    for settings in (start, *search.neighbours(start)):
        search.score(settings)
    if search.best is None:
        search.descend(start)
    if search.best is None:
        return otherwise
    changed = [
        f"{placed.name}={options.choices[now].sharding}"
        for placed, then, now in zip(plan.tables, wanted, search.best.settings, strict=True)
        if then != now
    ]
    cost = show_cost(search.best.cost, instance.time_unit)
    return f"{', '.join(changed)} would run, at {cost}; {otherwise}"
