"""Every resource at every place: Σ use of the shards there ≤ capacity there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from formulations.instance import IntArray, Scope
from formulations.model.closed import Rest
from formulations.model.columns import Columns
from formulations.model.loads import Loads, Row, distinct

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
