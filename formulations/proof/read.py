"""Vectors of a certificate as multipliers of rows (docs/proof.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import IntArray, Objective, Scope
from formulations.proof.rows import Rows
from formulations.proof.weights import Weights, weights


def vector_of(rows: Rows, vector: dict[str, Any]) -> Weights:
    """The multipliers that a vector of a certificate gives to rows.

    Raises
    ------
    InstanceError
        When it names what the rows do not have, or tells like places apart.
    """
    try:
        return weights(rows, dict(_items(rows, vector)))
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise InstanceError(f"certificate: a vector does not fit the instance ({error})") from error


def _items(rows: Rows, vector: dict[str, Any]) -> list[tuple[int, int]]:
    found = [*_costs(rows, vector), *_capacities(rows, vector), *_largest(rows, vector)]
    layout = rows.layout
    for key, row in (("moved_tables", layout.moved_tables), ("moved_bytes", layout.moved_bytes)):
        if key in vector:
            found.append((row, vector[key]))
    for name, items in vector.get("fusion", {}).items():
        group = rows.instance.fusion_groups.index(name)
        found += [(layout.fusion + rows.fused.index((table, group, level)), amount)
                  for table, level, amount in items]  # fmt: skip
    if any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for _, v in found):
        raise ValueError("multipliers are integers of 0 or more")
    return [(row, value) for row, value in found if value]


def _costs(rows: Rows, vector: dict[str, Any]) -> Iterator[tuple[int, int]]:
    for name, value in vector.get("cost", {}).items():
        if rows.instance.objective == Objective.TOTAL:
            yield rows.layout.cost, value
        else:
            first = rows.layout.cost + rows.measures.costs.index(name) * rows.cells.count
            yield from _parts(first, rows.cells.cell_of, value)


def _capacities(rows: Rows, vector: dict[str, Any]) -> Iterator[tuple[int, int]]:
    names = [r.name for r in rows.instance.resources]
    parts = {Scope.RANK: rows.cells.cell_of, Scope.MACHINE: rows.cells.group_of}
    for name, value in vector.get("capacity", {}).items():
        index = names.index(name)
        scope = rows.instance.resources[index].scope
        part = parts.get(scope, np.zeros(1, dtype=np.int64))
        yield from _parts(rows.layout.resource[index], part, value)


def _largest(rows: Rows, vector: dict[str, Any]) -> Iterator[tuple[int, int]]:
    resources = [rows.instance.resources[i].name for i in rows.measures.ranked]
    tables, costs = rows.instance.num_tables, len(rows.measures.costs)
    kinds = (("largest_cost", rows.measures.costs, 0), ("largest_use", resources, costs))
    for key, names, first in kinds:
        for name, items in vector.get(key, {}).items():
            for table, value, *machine in items:
                index, f = 1 + machine[0] if machine else 0, first + names.index(name)
                if index >= rows.sets or not 0 <= table < tables:
                    raise IndexError(f"row of table {table} at {machine}")
                place = index * (costs + len(resources)) + f
                yield rows.layout.chief + place * tables + table, value


def _parts(first: int, part: IntArray, value: int | list[int]) -> list[tuple[int, int]]:
    values = [value] * len(part) if isinstance(value, int) else value
    if len(values) != len(part):
        raise ValueError(f"{len(values)} multipliers for {len(part)} places")
    known: dict[int, int] = {}
    for p, v in zip(part.tolist(), values, strict=True):
        if known.setdefault(p, v) != v:
            raise ValueError("like places have different multipliers")
    return [(first + p, v) for p, v in known.items()]
