"""Build the model of an instance over a partition: every constraint family, and the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance
from formulations.instance.lowering import lower
from formulations.model.columns import Columns, add_columns, choose_one
from formulations.model.fusion import fuse
from formulations.model.largest import add_largest
from formulations.model.limits import limit_moves, limit_resources
from formulations.model.linear import LinearModel
from formulations.model.loads import Loads, nothing_closed, rest_of
from formulations.model.partition import Partition
from formulations.model.parts import Parts
from formulations.model.peaks import Goal, cost_of, set_goal
from formulations.model.symmetry import order_ranks

#: Costs are divided by a power of two until their sum over all candidates is below this.
MOST_COST = 2**59


@dataclass(frozen=True, eq=False)
class Model:
    """A linear model, and what its columns mean.

    Attributes
    ----------
    linear : LinearModel
    columns : Columns
    goal : Goal
    parts : Parts
    loads : Loads
    """

    linear: LinearModel
    columns: Columns
    goal: Goal
    parts: Parts
    loads: Loads


def build(instance: Instance, partition: Partition, parts: Parts | None = None) -> Model:
    """The model over a partition.

    With one rank in each cell the model is exact. With larger cells it is a relaxation: its rows
    are the exact model's, summed over the ranks of a cell, so every plan maps to a solution that
    costs no more.

    Parameters
    ----------
    instance : Instance
    partition : Partition
    parts : Parts, optional
    """
    parts = parts or Parts()
    tables = np.arange(instance.num_tables)
    if parts.tables is not None:
        tables = np.asarray(parts.tables, dtype=np.int64)  # integers even if empty
    keep = instance.allowed if parts.keep is None else parts.keep
    keep = keep & np.isin(instance.table_of, tables)
    check = parts.check or (lambda: None)
    rest = nothing_closed(instance) if parts.base is None else rest_of(instance, parts.base, tables)
    candidates = lower(instance, keep)
    check()
    model = LinearModel()
    columns = add_columns(model, candidates, partition)
    check()
    loads = Loads(columns)
    model.scale = _scale(loads, instance, partition.single)
    choose_one(columns, tables)
    limit_moves(columns, rest)
    fuse(columns, rest)
    check()
    goal = set_goal(loads, columns, rest, parts)
    check()
    limit_resources(loads, columns, rest, parts)
    check()
    if parts.cuts and parts.base is None:
        add_largest(loads, columns, goal)
    if parts.ordered:
        order_ranks(columns)
    check()
    return Model(model, columns, goal, parts, loads)


def _scale(loads: Loads, instance: Instance, single: bool) -> int:
    """The least power of two that keeps sums of costs within CP-SAT's integers.

    Pooled rows contain z once for each rank. Where every cell is one rank, these rows are cuts,
    which may be weakened instead.
    """
    activity = 0.0
    for _, values in cost_of(instance, 1):
        row = loads.everything(np.abs(values))
        activity += loads.activity(row) + (0 if single else loads.most(row) * row.size)
    scale = 1
    while activity / scale >= MOST_COST:
        scale *= 2
    return scale
