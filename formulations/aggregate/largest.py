"""Largest-shard rows: the rank that holds a table's largest shard also bears what all share.

For every table and cell: (least load of what lies on all its ranks) + (largest shard of the table
in that cell) ≤ z, and likewise ≤ the largest capacity of the cell's ranks. On all its ranks lie
``every_rank`` blocks, and the ``one_machine`` blocks on the cell's machine where it stands alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.instance import Instance, IntArray, Scope, Where

if TYPE_CHECKING:
    from formulations.aggregate.model import Aggregate, Features


def add_largest_rows(instance: Instance, aggregate: Aggregate, features: Features) -> None:
    """Add the rows for every peak and rank resource, where some shard is large enough to matter."""
    seats: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for option, _, entry, cell, column in aggregate.footprint.seats:
        key = (int(instance.table_of[option]), cell)
        seats.setdefault(key, []).append((option, entry, column))
    for index, peak in enumerate(aggregate.peaks):
        limit = _Limit(peak, [0] * aggregate.cells.count)
        _rows(instance, aggregate, features.cost[:, index], seats, limit)
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.RANK:
            most = [
                int(resource.capacity[aggregate.cells.cell_of == cell].max())
                for cell in range(aggregate.cells.count)
            ]
            _rows(instance, aggregate, features.use[:, index], seats, _Limit(None, most))


class _Limit:
    """Right-hand side: a peak column, or a capacity per cell."""

    def __init__(self, peak: int | None, most: list[int]) -> None:
        self.peak, self.most = peak, most


def _rows(
    instance: Instance,
    aggregate: Aggregate,
    values: IntArray,
    seats: dict[tuple[int, int], list[tuple[int, int, int]]],
    limit: _Limit,
) -> None:
    model = aggregate.model
    for cell in range(aggregate.cells.count):
        here = {t: rows for (t, c), rows in seats.items() if c == cell}
        if not here:
            continue
        base = _base_column(instance, aggregate, values, cell)
        for entries in here.values():
            columns, sizes = _largest(values, entries)
            if limit.peak is None and (base is None and max(sizes) <= limit.most[cell]):
                continue
            extra, weights = ([], []) if base is None else ([base], [1])
            if limit.peak is not None:
                model.row([*columns, *extra, limit.peak], [*sizes, *weights, -1], high=0)
            else:
                model.row([*columns, *extra], [*sizes, *weights], high=limit.most[cell])


def _largest(values: IntArray, entries: list[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
    """For each option the seat of its largest shard: one seat only, as two may part."""
    best: dict[int, tuple[int, int]] = {}
    for option, entry, column in entries:
        size = int(values[entry])
        if option not in best or size > best[option][0]:
            best[option] = (size, column)
    return [c for _, c in best.values()], [s for s, _ in best.values()]


def _base_column(
    instance: Instance, aggregate: Aggregate, values: IntArray, cell: int
) -> int | None:
    """A column no larger than what the covering blocks put on any rank of the cell."""
    sizes: dict[int, int] = {}
    tops: dict[int, dict[int, int]] = {}
    for option, block, where, column in aggregate.footprint.covers:
        least = _least(instance, aggregate, values, block, cell) if where == cell else 0
        if least > 0:
            sizes[column] = sizes.get(column, 0) + least
            of_table = tops.setdefault(int(instance.table_of[option]), {})
            most = least * aggregate.model.upper[column]
            of_table[option] = of_table.get(option, 0) + most
    if not sizes:
        return None
    top = sum(max(options.values()) for options in tops.values())
    base = aggregate.model.columns(1, upper=top, whole=True, unit=top)
    aggregate.model.row([*sizes, base], [*sizes.values(), -1], 0, 0)
    return base


def _least(
    instance: Instance, aggregate: Aggregate, values: IntArray, block: int, cell: int
) -> int:
    view = instance.block(block)
    if view.shared:
        return int(values[view.entries[0]])
    if view.where == Where.EVERY_RANK:
        return int(values[view.entries[aggregate.cells.cell_of == cell]].min())
    return int(values[view.entries].min())


__all__ = ["add_largest_rows", "np"]
