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


def limit_resources(loads: Loads, columns: Columns, rest: Rest, parts: Parts) -> None:
    """Add the rows that can bind, named ("capacity", resource, cell | group of machines | 0).

    Where shards choose single ranks, a row over all places is added. The others imply it, but it
    helps propagation and tightens the relaxation.
    """
    instance, partition = columns.candidates.instance, columns.partition
    for index, resource in enumerate(instance.resources):
        values = instance.shard_use[:, index]
        room = partition.gathered(resource.scope, resource.capacity - rest.use[index])
        name = ("capacity", resource.name)
        if resource.scope == Scope.CLUSTER:
            _limit(loads, [replace(loads.everything(values), place=0)], room, name)
            continue
        even = loads.even(values)
        rows = distinct(loads.rows(values, *partition.places(resource.scope)), room)
        carried = loads.most(even) if len(even.column) else 0
        rows = [r for r in rows if loads.most(r) + r.size * carried > room[r.place]]
        rows = loads.with_even(even, rows, name)
        _limit(loads, rows, room, name)
        if parts.cuts and len(rows) > 1 and partition.single and rest.empty:
            every = replace(loads.everything(values), place=len(room))
            _limit(loads, [every], np.append(room, room.sum()), (*name, ALL))


def limit_moves(columns: Columns, rest: Rest) -> None:
    """Limit how many tables, and how many bytes, move.

    A table of the current plan either stays, which is a candidate of its own, or moves. The rows:
    ("moved", "tables") Σ of x over candidates that move ≤ limit, and ("moved", "bytes") Σ of the
    bytes that these candidates place ≤ limit.
    """
    instance = columns.candidates.instance
    limits = ("tables", instance.max_moved_tables, rest.moved), (
        "bytes", instance.max_moved_bytes, rest.moved_bytes,
    )  # fmt: skip
    for kind, most, gone in limits:
        if most is not None:
            row = moving(columns, kind == "bytes")
            columns.model.row(("moved", kind), row.column, row.coefficient, high=most - gone)


def moving(columns: Columns, in_bytes: bool) -> Row:
    """The candidates that move, or the bytes that they place."""
    moves = columns.candidates.moves
    if not in_bytes:
        found = columns.x[moves]
        return Row(-1, 1, found, np.ones(len(found), dtype=np.int64))
    size, ranks = columns.candidates.instance.shard_move, len(columns.partition.cell_of)
    terms, even, off = columns.terms, columns.even, columns.off
    column = np.concatenate([terms.column, even.column, off.column])
    amount = np.concatenate(
        [size[terms.entry] * terms.times, size[even.entry] * ranks, size[off.entry] * off.times]
    )
    pays = moves[columns.owners[column]]
    return Row(-1, 1, *collect(column[pays], amount[pays]))


def _limit(loads: Loads, rows: list[Row], room: IntArray, name: tuple[object, ...]) -> None:
    """Add rows ≤ room, where they can be more."""
    for row in rows:
        own = (*name, row.place) if name[-1] != ALL else name
        limit = int(room[row.place])
        if loads.most(row) > limit:
            loads.model.row(own, row.column, row.coefficient, high=limit)
