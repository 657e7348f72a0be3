"""How full places are, as columns to be minimised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.model.build import Model
from formulations.model.loads import Row, distinct, rest_of


def fullest(
    model: Model,
    instance: Instance,
    rooms: Mapping[int, IntArray],
    parts: int,
    low: int,
    high: int | None = None,
) -> Row:
    """Add a column z from ``low`` to ``high``, with parts · Σ use ≤ z · room at every place of some
    resources; returns z as a row. Without ``high``, a column for each place where that exceeds
    ``low``: by how much; returns their sum.

    Over cells of several ranks it is a relaxation: their total use is compared with their total
    room.

    Parameters
    ----------
    instance : Instance
        Gives the uses.
    rooms : mapping of int to int64 array
        The room of every place, by number of the resource.
    """
    loads, linear, partition = model.loads, model.linear, model.columns.partition
    base, tables, found = model.parts.base, model.parts.tables, list[int]()
    closed = None if base is None or tables is None else rest_of(instance, base, tables).use
    if high is not None:
        found = linear.columns(1, high).tolist()
        linear.row(("fullest", "low"), found, [-1], high=-low)
    for index, each in rooms.items():
        resource, values = instance.resources[index], instance.shard_use[:, index]
        room = partition.gathered(resource.scope, each)
        used = 0 * room if closed is None else partition.gathered(resource.scope, closed[index])
        left = (0 if high is not None else low) * room - parts * used
        rows = loads.rows(values, *partition.places(resource.scope))
        rows = distinct(rows, room if closed is None else left)
        name = ("fullest", resource.name)
        for row in loads.with_even(loads.even(values), rows, name):
            own, most = int(left[row.place]), parts * loads.most(row)
            if high is None:
                whole = int(room[row.place])
                if most <= own or not whole:  # without room its capacity says all
                    continue
                found += linear.columns(1, (most - own) // whole + 1).tolist()
            linear.row(
                (*name, row.place), np.append(row.column, found[-1]),
                np.append(parts * row.coefficient, -room[row.place]), high=own,
            )  # fmt: skip
    return Row(-1, 1, np.asarray(found, dtype=np.int64), np.ones(len(found), dtype=np.int64))
