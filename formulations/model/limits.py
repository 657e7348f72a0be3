"""Capacities (at every place, Σ use ≤ capacity), and limits on what moves from the current plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.instance import IntArray, Scope
from formulations.model.columns import Columns
from formulations.model.loads import Loads, Rest, Row, collect, distinct
from formulations.model.parts import Parts

#: Key of the row over all places together.
ALL = -1
#: The unit of overflow is a place's capacity divided by this.
PARTS = 2**20


def limit_resources(loads: Loads, columns: Columns, rest: Rest, parts: Parts) -> None:
    """Add the rows that can bind, named ("capacity", resource, cell | group of machines | 0).

    Where shards choose single ranks, a row over all places is added. The others imply it, but it
    helps propagation and tightens the relaxation.
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
    """Limit how many tables, and how many bytes, move.

    A table of the current plan either stays, which is a candidate of its own, or moves. The rows:
    ("moved", "tables") Σ of x over candidates that move ≤ limit, and ("moved", "bytes") Σ of the
    bytes that these candidates place ≤ limit.
    """
    instance, moves = columns.candidates.instance, columns.candidates.moves
    if instance.max_moved_tables is not None:
        moving = columns.x[moves]
        room = instance.max_moved_tables - rest.moved
        columns.model.row(("moved", "tables"), moving, np.ones(len(moving), int), high=room)
    if instance.max_moved_bytes is not None:
        column, amount = bytes_moving(columns)
        room = instance.max_moved_bytes - rest.moved_bytes
        columns.model.row(("moved", "bytes"), column, amount, high=room)


def bytes_moving(columns: Columns) -> tuple[IntArray, IntArray]:
    """The bytes that candidates which move place, by column."""
    size, ranks = columns.candidates.instance.shard_move, len(columns.partition.cell_of)
    terms, even, off = columns.terms, columns.even, columns.off
    column = np.concatenate([terms.column, even.column, off.column])
    amount = np.concatenate(
        [size[terms.entry] * terms.times, size[even.entry] * ranks, size[off.entry] * off.times]
    )
    moving = columns.candidates.moves[columns.owners[column]]
    return collect(column[moving], amount[moving])


def _limit(
    loads: Loads, rows: list[Row], room: IntArray, name: tuple[object, ...], soft: IntArray | None
) -> None:
    """Add rows ≤ room; with ``soft`` they may be exceeded at a cost per share of the capacity."""
    model = loads.model
    for row in rows:
        own = (*name, row.place) if name[-1] != ALL else name
        most, limit = loads.most(row), int(room[row.place])
        if soft is None:
            if most > limit:
                model.row(own, row.column, row.coefficient, high=limit)
        elif most > limit:
            _pay_beyond(loads, own, row, limit, int(soft[row.place]))


def _pay_beyond(loads: Loads, name: tuple[object, ...], row: Row, limit: int, whole: int) -> None:
    """Add row ≤ limit + step × overflow, with the overflow in the objective."""
    model, step = loads.model, max(1, whole // PARTS)
    most = (loads.most(row) + max(0, -limit)) // step + 2
    over = model.columns(1, most)
    model.row(name, np.append(row.column, over), np.append(row.coefficient, -step), high=limit)
    model.minimise(np.append(model.cost_columns, over), np.append(model.cost, 1), model.offset)
