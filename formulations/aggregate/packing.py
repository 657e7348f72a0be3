"""Packing rows: how many large shards fit side by side on the ranks of a cell.

For k ≥ 1 the map u(x) = (⌈(k+1)·x⌉ − 1)/k is a dual feasible function: numbers that add up to at
most 1 have images that add up to at most 1 (Fekete and Schepers, "New classes of fast lower bounds
for bin packing problems", Mathematical Programming 91, 2001; k = 1 counts the shards above half).
So for any capacity C of a rank, Σ over the shards in a cell of (⌈(k+1)·size/C⌉ − 1) ≤ k·|cell|.
The same holds for costs, with a known upper limit on the busiest rank in place of C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope

if TYPE_CHECKING:
    from formulations.aggregate.model import Aggregate, Features

_STEPS = (1, 2, 3, 4, 5)


def add_packing_rows(
    instance: Instance, aggregate: Aggregate, features: Features, upper: int | None
) -> None:
    """Add the rows for every rank resource, and for the cost when a limit on it is known."""
    cells = aggregate.cells
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.RANK:
            most = np.zeros(cells.count, dtype=np.int64)
            np.maximum.at(most, cells.cell_of, resource.capacity)
            _rows(aggregate, features.use[:, index], most)
    if instance.objective == Objective.BUSIEST_RANK and upper is not None and upper > 0:
        _rows(aggregate, features.cost[:, 0], np.full(cells.count, upper))


def _rows(aggregate: Aggregate, sizes: IntArray, capacity: IntArray) -> None:
    footprint, cells = aggregate.footprint, aggregate.cells
    for cell in range(cells.count):
        if capacity[cell] <= 0:
            continue
        here = footprint.cell == cell
        column, count = footprint.column[here], footprint.count[here]
        size = sizes[footprint.entry[here]]
        for k in _STEPS:
            # Exact in int64: sizes stay below 2^53 and k + 1 is small.
            image = np.maximum(-(-((k + 1) * size) // int(capacity[cell])) - 1, 0)
            amount = image * count
            use = amount > 0
            if not use.any():
                break
            merged, where = np.unique(column[use], return_inverse=True)
            total = np.zeros(len(merged), dtype=np.int64)
            np.add.at(total, where, amount[use])
            aggregate.model.row(merged, total, high=k * int(cells.cell_size[cell]))
