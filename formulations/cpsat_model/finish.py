"""Polish a plan that another method found: same objective or better, lower total, less use."""

from __future__ import annotations

from formulations.cpsat_model.extract import extract, values_of
from formulations.cpsat_model.hints import fit_hint
from formulations.cpsat_model.polish import polish
from formulations.cpsat_model.run import build
from formulations.cpsat_model.variables import Variables
from formulations.instance import Instance
from formulations.placement import Placement
from formulations.presolve import Presolved
from formulations.settings import Clock, OutOfTime, Settings


def polished(
    instance: Instance, presolved: Presolved, placement: Placement, settings: Settings, clock: Clock
) -> Placement:
    """A plan at least as good in the objective, then in the total, then in Σ use/capacity.

    Best effort within what :mod:`formulations.cpsat_model.polish` allows itself; the plan given
    comes back where nothing better is found or the model cannot hold it.
    """
    plan = fit_hint(instance, presolved, placement, ordered=False)
    if plan is None:
        return placement
    variables = Variables(instance, check=clock.check)
    try:
        loads, goal = build(variables, presolved, ordered=False)
    except OutOfTime:
        return placement
    variables.check = None
    values = values_of(variables, goal, plan)
    if values is None:
        return placement
    values = polish(variables, loads, goal, values, settings, clock)
    return extract(variables, lambda i: int(values[i]))
