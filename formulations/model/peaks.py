"""The objective: the total, the busiest rank, or the sum over phases of the busiest rank, in whole
or beyond what is hidden."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.model.columns import Columns
from formulations.model.loads import Loads, Rest, Row, distinct
from formulations.model.parts import Parts


@dataclass
class Goal:
    """The objective of the model.

    Attributes
    ----------
    phases : list of (name, values [entries], column, hidden)
        Peaks that have a column z, with their scaled costs, and how far the peak exceeds z.
    """

    phases: list[tuple[str, IntArray, int, int]] = field(default_factory=list)


def cost_of(instance: Instance, scale: int) -> list[tuple[str, IntArray]]:
    """Cost of every shard entry for each peak: of one phase, or of all phases together."""
    if instance.by_phase:
        return [
            (phase, np.ascontiguousarray(instance.shard_cost[:, p]) // scale)
            for p, phase in enumerate(instance.phases)
        ]
    return [("all", instance.shard_cost.sum(axis=1) // scale)]


def set_goal(loads: Loads, columns: Columns, rest: Rest, parts: Parts) -> Goal:
    """Add the objective.

    total: min Σ cost.  busiest_rank: min z.  step_time: min Σ_p z_p.  With z_p at least the cost
    of every rank, as rows ("peak", phase, cell) summed over the ranks of a cell:
    Σ cost ≤ |cell|·z_p. Where all ranks carry the same load, z_p is that sum and needs no column.
    pipelined_step: the same with z_p at least the cost of every rank less the phase's hidden time,
    Σ cost ≤ |cell|·(z_p + hidden), and at least 0.
    """
    instance, model = columns.candidates.instance, loads.model
    costs = cost_of(instance, model.scale)
    limit = None if parts.limit is None else parts.limit // model.scale
    goal = Goal()
    if instance.objective == Objective.TOTAL:
        row = loads.everything(costs[0][1])
        closed = int(rest.cost.sum() + rest.off_cost.sum()) // model.scale
        model.minimise(row.column, row.coefficient, closed)
        if limit is not None:
            model.row(("limit",), row.column, row.coefficient, high=limit - closed)
        return goal
    if instance.objective == Objective.BUSIEST_RANK:
        loads_now = rest.cost.sum(axis=1, keepdims=True) // model.scale
    else:
        loads_now = rest.cost // model.scale
    hidden = (-(-instance.hidden_time // model.scale)).tolist() if instance.by_phase else [0]
    parts_of = [
        _peak(loads, columns, goal, (*cost, loads_now[:, i], limit, hidden[i]), rest.empty)
        for i, cost in enumerate(costs)
    ]
    row = Row(-1, 1, np.concatenate([p.column for p in parts_of]),
              np.concatenate([p.coefficient for p in parts_of]))  # fmt: skip
    model.minimise(row.column, row.coefficient)
    one = len(goal.phases) == 1 and len(row.column) == 1
    if limit is not None and not (one and limit >= 0):  # else the column's upper limit suffices
        model.row(("limit",), row.column, row.coefficient, high=limit)
    return goal


def _peak(
    loads: Loads,
    columns: Columns,
    goal: Goal,
    cost: tuple[str, IntArray, IntArray, int | None, int],
    whole: bool,
) -> Row:
    """The peak of one phase as a row: its column z, or the sum if all ranks carry the same and
    nothing is hidden."""
    (phase, values, closed, limit, hidden), partition = cost, columns.partition
    constant = partition.gathered(Scope.RANK, closed)
    even = loads.even(values)
    rows = distinct(loads.rows(values, *partition.places(Scope.RANK)), -constant)
    if whole and not hidden and not any(len(r.column) for r in rows):
        return even
    if whole and any(len(r.column) and (r.coefficient > 0).all() for r in rows):
        rows = [r for r in rows if len(r.column)]  # others cannot be the peak
    if partition.single:
        most = max(loads.most(r) + int(constant[r.place]) for r in rows)
        most += loads.most(even) if len(even.column) else 0
    else:  # one rank of a cell may carry more than the mean
        most = loads.most(loads.everything(values, off=False))
    hidden = min(hidden, max(0, most))  # more makes no difference
    most = most - hidden if limit is None else min(most - hidden, limit)
    rows = loads.with_even(even, rows, ("peak", phase))
    z = int(loads.model.columns(1, max(0, most))[0])
    local = not whole and limit is not None and not columns.candidates.instance.by_phase
    for row in rows:
        fixed, name = int(constant[row.place]), ("peak", phase, row.place)
        if local and not partition.open[row.place]:
            # The load of the open ranks may fall even if a closed rank stays the busiest.
            if len(row.column):
                loads.model.row(name, row.column, row.coefficient, high=(limit or 0) - fixed)
            continue
        loads.model.row(
            name, np.append(row.column, z), np.append(row.coefficient, -row.size),
            high=row.size * hidden - fixed,
        )  # fmt: skip
    goal.phases.append((phase, values, z, hidden))
    return Row(-1, 1, np.asarray([z]), np.ones(1, dtype=np.int64))
