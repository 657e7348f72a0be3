"""After the primary objective: lower the total, then Σ use/capacity, as far as time allows."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from formulations.cpsat_model.extract import evaluate, goal_value
from formulations.cpsat_model.loads import Loads, Row
from formulations.cpsat_model.objective import Goal
from formulations.cpsat_model.rows import MAX_ROW, activity, expression
from formulations.cpsat_model.search import search
from formulations.cpsat_model.variables import Variables
from formulations.instance import IntArray, Objective
from formulations.settings import Clock, Settings

#: Share of the time already spent, and the least and most seconds, a polishing step may take.
SHARE, LEAST, MOST = 0.25, 0.3, 5.0
#: Σ use/capacity is counted in parts of this.
FINENESS = 10**6


def polish(
    variables: Variables, loads: Loads, goal: Goal, values: IntArray,
    settings: Settings, clock: Clock,
) -> IntArray:  # fmt: skip
    """Values at least as good as the given ones in the primary objective.

    First the total is lowered, then Σ over resources of use/capacity, each best effort and each
    without giving up what came before.
    """
    if not settings.polish or goal.scale != 1:
        return values
    variables.cp.add(goal.expression(variables) <= goal_value(goal, values))
    for row in _secondary(variables, loads, goal):
        if clock.over() or activity(variables, row.var, row.coef) >= MAX_ROW:
            break
        values = _improve(variables, row, values, settings, clock)
        variables.cp.add(expression(variables, row) <= evaluate(row, values))
    return values


def _secondary(variables: Variables, loads: Loads, goal: Goal) -> list[Row]:
    instance = variables.instance
    rows = []
    if instance.objective != Objective.TOTAL and not (loads.only_uniform and not goal.tops):
        rows.append(loads.cluster(instance.shard_cost.sum(axis=1)))
    share = np.zeros(len(instance.shard_use), dtype=np.int64)
    for index, resource in enumerate(instance.resources):
        room = max(1, int(resource.capacity.sum()))
        share += (instance.shard_use[:, index].astype(float) / room * FINENESS).astype(np.int64)
    if share.any():
        rows.append(loads.cluster(share))
    return rows


def _improve(
    variables: Variables, row: Row, values: IntArray, settings: Settings, clock: Clock
) -> IntArray:
    variables.cp.minimize(expression(variables, row))
    give_hint(variables, values)
    seconds = min(clock.remaining(), MOST, max(LEAST, SHARE * clock.seconds()))
    found = search(variables, settings, clock, seconds, scale=None)
    if found.status in (cp_model.OPTIMAL, cp_model.FEASIBLE) and found.values is not None:
        return found.values
    return values


def give_hint(variables: Variables, values: IntArray) -> None:
    """Hint every variable of the model."""
    variables.cp.clear_hints()
    for item, value in zip(variables.items, values.tolist(), strict=True):
        variables.cp.add_hint(item, value)
