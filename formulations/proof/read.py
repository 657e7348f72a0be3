"""Vectors of a certificate as multipliers of rows (docs/proof.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import IntArray, Objective, Scope
from formulations.proof.rows import Rows
from formulations.proof.weights import Weights, weights


def vector_of(rows: Rows, vector: list[dict[str, Any]]) -> Weights:
    """The multipliers that a vector of a certificate gives to rows.

    Raises
    ------
    InstanceError
        When it names what the rows do not have, or tells like places apart.
    """
    try:
        return weights(rows, _multipliers(rows, vector))
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise InstanceError(f"certificate: a vector does not fit the instance ({error})") from error


def _multipliers(rows: Rows, vector: list[dict[str, Any]]) -> dict[int, int]:
    """By row, as far as they are not 0."""
    found: dict[int, int] = {}
    spread: dict[int, tuple[IntArray, list[int]]] = {}
    for item in vector:
        times = item["times"]
        if isinstance(times, bool) or not isinstance(times, int) or times < 0:
            raise ValueError("multipliers are integers of 0 or more")
        if item["row"] in ("cost", "capacity"):
            first, part = _places(rows, item)
            values = spread.setdefault(first, (part, [0] * len(part)))[1]
            for place in [item["at"]] if "at" in item else range(len(part)):
                values[place] += times
        else:
            row = _row(rows, item)
            found[row] = found.get(row, 0) + times
    for first, (part, values) in spread.items():
        for place, value in zip(part.tolist(), values, strict=True):
            if found.setdefault(first + place, value) != value:
                raise ValueError("like places have different multipliers")
    return {row: value for row, value in found.items() if value}


def _places(rows: Rows, item: dict[str, Any]) -> tuple[int, IntArray]:
    """The first row of a cost or resource, and which of its rows each place has."""
    one: IntArray = np.zeros(1, dtype=np.int64)
    if item["row"] == "cost":
        if rows.instance.objective == Objective.TOTAL:
            return rows.layout.cost, one
        cost = rows.measures.costs.index(item["of"])
        return rows.layout.cost + cost * rows.cells.count, rows.cells.cell_of
    index = [resource.name for resource in rows.instance.resources].index(item["of"])
    parts = {Scope.RANK: rows.cells.cell_of, Scope.MACHINE: rows.cells.group_of}
    return rows.layout.resource[index], parts.get(rows.instance.resources[index].scope, one)


def _row(rows: Rows, item: dict[str, Any]) -> int:
    """The row of a largest shard, a fusion group's level or a limit on moves."""
    layout, kind = rows.layout, item["row"]
    if kind in ("moved_tables", "moved_bytes"):
        return layout.moved_tables if kind == "moved_tables" else layout.moved_bytes
    if kind == "fusion":
        group = rows.instance.fusion_groups.index(item["of"])
        return layout.fusion + rows.fused.index((item["table"], group, item["level"]))
    ranked = [rows.instance.resources[i].name for i in rows.measures.ranked]
    costs, tables = len(rows.measures.costs), rows.instance.num_tables
    cost = kind == "largest_cost"
    f = rows.measures.costs.index(item["of"]) if cost else costs + ranked.index(item["of"])
    index = 1 + item["machine"] if "machine" in item else 0
    if index >= rows.sets or not 0 <= item["table"] < tables:
        raise IndexError(f"a row of table {item['table']}")
    return layout.chief + (index * (costs + len(ranked)) + f) * tables + int(item["table"])
