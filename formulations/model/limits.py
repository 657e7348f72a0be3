"""Limits on sums over shards: of every resource at every place (Σ use there ≤ capacity there), and
of what moves against the current plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from formulations.instance import IntArray, Scope
from formulations.model.columns import Columns
from formulations.model.loads import Loads, Rest, Row, collect, distinct

if TYPE_CHECKING:
    from formulations.model.build import Parts

#: Key of the row over all places together.
ALL = -1
#: Overflow of one place is paid in this many parts of its capacity.
PARTS = 2**20


def limit_resources(loads: Loads, columns: Columns, rest: Rest, parts: Parts) -> None:
    """Add the rows that can bind, named ("capacity", resource, cell | group of machines | 0).

    Where single ranks choose, also the row over all places, which the others imply: propagation
    and the relaxation gain from it.
    """
    instance, partition = columns.candidates.instance, columns.partition
    for index, resource in enumerate(instance.resources):
        values = instance.shard_use[:, index]
        capacity = partition.gathered(resource.scope, resource.capacity)
        room = capacity - partition.gathered(resource.scope, rest.use[index])
        name = ("capacity", resource.name)
        if resource.scope == Scope.CLUSTER:
            rows = [replace(loads.everything(values), place=0)]
            _limit(loads, rows, room, name, capacity if parts.repair else None)
            continue
        even = loads.even(values)
        rows = distinct(loads.rows(values, *partition.places(resource.scope)), room)
        carried = loads.most(even) if len(even.column) else 0
        rows = [r for r in rows if loads.most(r) + r.size * carried > room[r.place]]
        rows = loads.with_even(even, rows, name)
        _limit(loads, rows, room, name, capacity if parts.repair else None)
        if parts.cuts and not parts.repair and len(rows) > 1 and partition.single and rest.empty:
            total = np.append(room, room.sum())
            _limit(
                loads,
                [replace(loads.everything(values), place=len(room))],
                total,
                (*name, ALL),
                None,
            )


def limit_moves(columns: Columns, rest: Rest) -> None:
    """At most so many tables, and so many bytes, move.

    A table of the current plan either stays (a candidate of its own) or moves: ("moved", "tables")
    Σ of the x that move ≤ the limit, and ("moved", "bytes") Σ bytes of what their columns place ≤
    the limit.
    """
    instance, moves = columns.candidates.instance, columns.candidates.moves
    if instance.max_moved_tables is not None:
        moving = columns.x[moves]
        room = instance.max_moved_tables - rest.moved
        columns.model.row(("moved", "tables"), moving, np.ones(len(moving), int), high=room)
    if instance.max_moved_bytes is not None:
        size, ranks = instance.shard_move, len(columns.partition.cell_of)
        terms, even, off = columns.terms, columns.even, columns.off
        column = np.concatenate([terms.column, even.column, off.column])
        amount = np.concatenate(
            [size[terms.entry] * terms.times, size[even.entry] * ranks, size[off.entry] * off.times]
        )
        moving = moves[columns.owners[column]]
        column, amount = collect(column[moving], amount[moving])
        room = instance.max_moved_bytes - rest.moved_bytes
        columns.model.row(("moved", "bytes"), column, amount, high=room)


def _limit(
    loads: Loads, rows: list[Row], room: IntArray, name: tuple[object, ...], soft: IntArray | None
) -> None:
    """Rows ≤ room; where ``soft``, what exceeds it is paid for in parts of that capacity."""
    model = loads.model
    for row in rows:
        own = (*name, row.place) if name[-1] != ALL else name
        most, limit = loads.most(row), int(room[row.place])
        if soft is None:
            if most > limit:
                model.row(own, row.column, row.coefficient, high=limit)
        elif most > limit:
            pay_beyond(loads, own, row, limit, int(soft[row.place]))


def pay_beyond(loads: Loads, name: tuple[object, ...], row: Row, limit: int, whole: int) -> None:
    """Row ≤ limit + step × overflow, with the overflow added to the objective."""
    model, step = loads.model, max(1, whole // PARTS)
    most = (loads.most(row) + max(0, -limit)) // step + 2
    over = model.columns(1, most)
    model.row(name, np.append(row.column, over), np.append(row.coefficient, -step), high=limit)
    model.minimise(np.append(model.cost_columns, over), np.append(model.cost, 1), model.offset)
