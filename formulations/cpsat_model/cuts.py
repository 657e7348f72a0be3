"""Rows every plan satisfies, which the relaxation does not see by itself."""

from __future__ import annotations

import numpy as np

from formulations.cpsat_model.loads import Loads, Row
from formulations.cpsat_model.objective import Goal
from formulations.cpsat_model.rows import add_at_most, expression, with_base
from formulations.cpsat_model.variables import Variables
from formulations.instance import IntArray, Scope, Where


def add_cuts(variables: Variables, loads: Loads, goal: Goal) -> None:
    """Pooled rows for every busiest-rank variable z, big-shard rows for it and every resource.

    Pooled:  Σ over all placed shards of cost ≤ N·z.
    Big shard, for a table t:  Σ_{o on every rank} min cost·x_o + Σ_{other o of t} max cost·x_o
    ≤ z: some rank carries the largest shard of t on top of what every rank carries at least.
    Likewise for a resource against its largest capacity.
    """
    if loads.only_uniform:
        return
    ranks = variables.instance.num_ranks
    for top in goal.tops:
        pooled = loads.placed(top.column)
        variables.cp.add(expression(variables, pooled) <= ranks * variables.items[top.z])
        for row in _big_shards(variables, top.column):
            variables.cp.add(expression(variables, row) <= variables.items[top.z])
    for index, resource in enumerate(variables.instance.resources):
        if resource.scope == Scope.RANK:
            room = int(resource.capacity.max())
            for row in _big_shards(variables, variables.instance.shard_use[:, index]):
                add_at_most(variables, row.var, row.coef, room)


def _big_shards(variables: Variables, column: IntArray) -> list[Row]:
    """The left sides of the big-shard rows, one a table that has an option to place."""
    instance = variables.instance
    least, largest = _extremes(variables, column)
    used = variables.option >= 0
    keep = used & (least > 0)
    everywhere = Row(1, variables.option[keep], least[keep])
    extra = np.flatnonzero(used & (largest > least))
    tables = np.unique(instance.table_of[extra])
    rows = []
    for table in tables:
        own = extra[instance.table_of[extra] == table]
        rows.append(Row(1, variables.option[own], (largest - least)[own]))
    return with_base(variables, everywhere, rows)


def _extremes(variables: Variables, column: IntArray) -> tuple[IntArray, IntArray]:
    """What an option puts on every rank at least, and on some rank at least: [options] each."""
    instance = variables.instance
    placed = instance.block_where != Where.CLUSTER
    every = instance.block_where == Where.EVERY_RANK
    low = np.minimum.reduceat(column, instance.block_shards[:-1]) * every
    high = np.maximum.reduceat(column, instance.block_shards[:-1]) * placed
    least = np.add.reduceat(low, instance.option_blocks[:-1])
    # A rank carries the largest shard of one block and at least the least of the others.
    gain = np.maximum.reduceat(high - low, instance.option_blocks[:-1])
    return least, least + gain
