"""The fill of the fullest place, as a column to be minimised."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.model.build import Model
from formulations.model.loads import Row, distinct


def fullest(
    model: Model, instance: Instance, rooms: Mapping[int, IntArray], parts: int, low: int, high: int
) -> Row:
    """Add a column z from ``low`` to ``high``, with parts · Σ use ≤ z · room at every place of some
    resources; returns z as a row.

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
    z = int(linear.columns(1, high)[0])
    linear.row(("fullest", "low"), [z], [-1], high=-low)
    for index, each in rooms.items():
        resource, values = instance.resources[index], instance.shard_use[:, index]
        room = partition.gathered(resource.scope, each)
        rows = distinct(loads.rows(values, *partition.places(resource.scope)), room)
        name = ("fullest", resource.name)
        for row in loads.with_even(loads.even(values), rows, name):
            linear.row(
                (*name, row.place), np.append(row.column, z),
                np.append(parts * row.coefficient, -room[row.place]), high=0,
            )  # fmt: skip
    return Row(-1, 1, np.asarray([z]), np.ones(1, dtype=np.int64))
