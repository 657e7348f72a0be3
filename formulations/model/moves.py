"""Limits on what moves against the current plan."""

from __future__ import annotations

import numpy as np

from formulations.model.closed import Rest
from formulations.model.columns import Columns
from formulations.model.loads import collect


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
