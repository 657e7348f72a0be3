"""What is minimised: the total, the busiest rank, or the sum over phases of the busiest rank."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model

from formulations.cpsat_model.loads import Loads, Row, most
from formulations.cpsat_model.rows import MAX_ROW, activity, expression, with_base
from formulations.cpsat_model.variables import Variables
from formulations.instance import IntArray, Objective


@dataclass(frozen=True, eq=False)
class Top:
    """A variable ``z`` at least as large as each of ``rows``: the busiest rank of a column."""

    z: int
    column: IntArray
    rows: list[Row]


@dataclass
class Goal:
    """The objective of the model.

    Attributes
    ----------
    parts : list of Row
        Its value is the sum of these rows.
    tops : list of Top
    scale : int
        Costs were divided by this, rounding down, so ``scale`` × any bound of the model is a
        bound in true costs. 1 wherever CP-SAT's integers suffice.
    """

    parts: list[Row] = field(default_factory=list)
    tops: list[Top] = field(default_factory=list)
    scale: int = 1

    def expression(self, variables: Variables) -> cp_model.LinearExprT:
        """The sum of the parts."""
        return cp_model.LinearExpr.sum([expression(variables, r) for r in self.parts])


def columns(variables: Variables) -> list[IntArray]:
    """Cost columns whose busiest rank counts: one for ``busiest_rank``, one a phase else."""
    cost = variables.instance.shard_cost
    if variables.instance.objective == Objective.STEP_TIME:
        return [np.ascontiguousarray(cost[:, p]) for p in range(cost.shape[1])]
    return [cost.sum(axis=1)]


def set_goal(variables: Variables, loads: Loads) -> Goal:
    """Add the objective.

    total: min Σ cost.  busiest_rank: min z, z ≥ cost on r for every rank r.  step_time:
    min Σ_p z_p, z_p ≥ cost of phase p on r. Where all ranks have one and the same row (no choice
    of place), z is that row and needs no variable.
    """
    goal = Goal(scale=_scale(variables, loads))
    for column in columns(variables):
        if variables.instance.objective == Objective.TOTAL:
            goal.parts.append(loads.cluster(column // goal.scale))
        else:
            _add_top(variables, loads, column // goal.scale, goal)
    variables.cp.minimize(goal.expression(variables))
    return goal


def _add_top(variables: Variables, loads: Loads, column: IntArray, goal: Goal) -> None:
    distinct = list({r.key: r for r in loads.ranks(column)}.values())
    base = loads.uniform(column)
    upper = most(variables, base) + max(most(variables, r) for r in distinct)
    rows = with_base(variables, base, _undominated(distinct))
    if len(rows) == 1:
        goal.parts.append(rows[0])
        return
    z = variables.new(max(2, upper))
    for row in rows:
        variables.cp.add(expression(variables, row) <= variables.items[z])
    goal.tops.append(Top(z, column, rows))
    goal.parts.append(Row(0, np.asarray([z]), np.asarray([1])))


def _undominated(rows: list[Row]) -> list[Row]:
    """Without the bare base where another rank carries the base and more."""
    if any(len(r.var) and (r.coef > 0).all() for r in rows):
        return [r for r in rows if len(r.var)]
    return rows


def _scale(variables: Variables, loads: Loads) -> int:
    """The least power of two that keeps the objective and its rows within CP-SAT's integers."""
    scale = 1
    while sum(_size(variables, loads, c // scale) for c in columns(variables)) >= MAX_ROW // 4:
        scale *= 2
    return scale


def _size(variables: Variables, loads: Loads, column: IntArray) -> int:
    row = loads.cluster(column)
    return activity(variables, row.var, row.coef)
