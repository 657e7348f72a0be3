"""Integer multipliers of rows, the option prices they imply, and their form in a file
(docs/proof.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import IntArray, Objective, Scope
from formulations.proof.rows import Rows

#: Arrays of Python integers, because multipliers times bytes exceed 64 bits.
BigArray = np.ndarray[Any, np.dtype[np.object_]]


@dataclass(frozen=True, eq=False)
class Weights:
    """A vector of multipliers over :class:`Rows`.

    Attributes
    ----------
    of_row : dict of row to int
        All positive. A cover row has the sum of the multipliers of its set's largest-shard rows.
    level : int
        D: the factor of the target's limit on the right-hand side.
    room : int
        The rest of the right-hand side.
    """

    of_row: dict[int, int]
    level: int
    room: int

    def right(self, limit: int | None) -> int:
        """The right-hand side for plans that cost at most ``limit``."""
        return self.room + (0 if limit is None else self.level * limit)


def weights(rows: Rows, multiplier: dict[int, int]) -> Weights:
    """Complete multipliers of cost, resource, largest-shard and move rows.

    Parameters
    ----------
    rows : Rows
    multiplier : dict of row to int
        Positive; those of cover rows are derived.
    """
    layout, width = rows.layout, rows.measures.value.shape[1]
    costs, tables = len(rows.measures.costs), rows.instance.num_tables
    of_row, sums = dict(multiplier), [0] * costs
    for row, amount in multiplier.items():
        if row < costs * rows.cells.count:
            sums[row // rows.cells.count] += amount * int(
                rows.cells.cell_size[row % rows.cells.count]
            )
        elif layout.chief <= row < layout.moved_tables:
            index, f = divmod((row - layout.chief) // tables, width)
            cover = layout.cover + index * width + f
            of_row[cover] = of_row.get(cover, 0) + amount
            if f < costs:
                sums[f] += amount
    level = max(sums, default=0)
    if rows.instance.objective == Objective.TOTAL:
        level = multiplier.get(layout.cost, 0)
    room = sum(amount * int(rows.capacity[row]) for row, amount in multiplier.items())
    return Weights(of_row, level, room + _fusion_room(rows, multiplier))


def _fusion_room(rows: Rows, multiplier: dict[int, int]) -> int:
    """The most that fusion rows add to the right-hand side: every group is at one level."""
    sums: dict[int, dict[int, int]] = {}
    for row, amount in multiplier.items():
        if row >= rows.layout.fusion:
            _, group, level = rows.fused[row - rows.layout.fusion]
            levels = sums.setdefault(group, {})
            levels[level] = levels.get(level, 0) + amount
    return sum(max(levels.values()) for levels in sums.values())


def choice_prices(rows: Rows, vector: Weights) -> BigArray:
    """Price of every choice, object array [choices] of int."""
    result: BigArray = np.zeros(len(rows.start) - 1, dtype=object)
    if not vector.of_row:
        return result
    full = np.zeros(rows.layout.size, dtype=object)
    for row, amount in vector.of_row.items():
        full[row] = amount
    used = np.flatnonzero(full[rows.row])
    if len(used):
        owner = np.searchsorted(rows.start, used, side="right") - 1
        first = np.flatnonzero(np.append(True, np.diff(owner) != 0))
        products = full[rows.row[used]] * rows.amount[used].astype(object)
        result[owner[first]] = np.add.reduceat(products, first)
    return result


def option_prices(rows: Rows, choices: BigArray, closed: IntArray | None = None) -> BigArray:
    """Price of every option at its cheapest places, object array [options]; inf: no place.

    Parameters
    ----------
    rows : Rows
    choices : object array [choices]
        See :func:`choice_prices`.
    closed : int array, optional
        Choices that the homes rule out.
    """
    prices = choices[: rows.instance.num_options].copy()
    if len(rows.slot_option):
        first = rows.instance.num_options
        places = choices[first:].copy()
        if closed is not None and len(closed):
            places[closed - first] = float("inf")
        least = np.minimum.reduceat(places, rows.slot_start[:-1] - first)
        np.add.at(prices, rows.slot_option, least * rows.slot_times.astype(object))
    return prices


def vector_to_list(rows: Rows, vector: Weights) -> list[dict[str, Any]]:
    """A vector in the form of the file (docs/proof.md)."""
    layout, measures, instance = rows.layout, rows.measures, rows.instance
    cells, width, found = rows.cells, measures.value.shape[1], list[dict[str, Any]]()
    if instance.objective == Objective.TOTAL:
        found += _spread(vector, "cost", Objective.TOTAL.value, layout.cost, _ONE)
    for f, name in enumerate(measures.costs):
        found += _spread(vector, "cost", name, layout.cost + f * cells.count, cells.cell_of)
    parts = {Scope.RANK: cells.cell_of, Scope.MACHINE: cells.group_of}
    for first, resource in zip(layout.resource, instance.resources, strict=True):
        part = parts.get(resource.scope, _ONE)
        found += _spread(vector, "capacity", resource.name, first, part)
    costs = [("largest_cost", name) for name in measures.costs]
    ranked = [("largest_use", instance.resources[i].name) for i in measures.ranked]
    for row, amount in sorted(vector.of_row.items()):
        if layout.chief <= row < layout.moved_tables:
            place, table = divmod(row - layout.chief, instance.num_tables)
            index, f = divmod(place, width)
            kind, name = [*costs, *ranked][f]
            machine = {"machine": index - 1} if index else {}
            found.append({"row": kind, "of": name, "table": table, **machine, "times": amount})
        elif row >= layout.fusion:
            table, group, level = rows.fused[row - layout.fusion]
            name = instance.fusion_groups[group]
            found.append({"row": "fusion", "of": name, "table": table, "level": level,
                          "times": amount})  # fmt: skip
    for key, row in (("moved_tables", layout.moved_tables), ("moved_bytes", layout.moved_bytes)):
        if row in vector.of_row:
            found.append({"row": key, "times": vector.of_row[row]})
    return found


#: The single place of a row about the whole cluster.
_ONE: IntArray = np.zeros(1, dtype=np.int64)


def _spread(
    vector: Weights, kind: str, name: str, first: int, part: IntArray
) -> list[dict[str, Any]]:
    """One item if all places have the same multiplier, else one for each place."""
    values = [vector.of_row.get(first + int(p), 0) for p in part]
    row = {"row": kind, "of": name}
    if len(set(values)) == 1:
        return [row | {"times": values[0]}] if values[0] else []
    return [row | {"at": at, "times": value} for at, value in enumerate(values) if value]


def vector_of(rows: Rows, vector: list[dict[str, Any]]) -> Weights:
    """The multipliers of rows that a certificate's vector stands for.

    Raises
    ------
    InstanceError
        When it names something that the rows do not have, or gives ranks of one cell different
        multipliers.
    """
    try:
        return weights(rows, _multipliers(rows, vector))
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise InstanceError(f"certificate: a vector does not fit the instance ({error})") from error


def _multipliers(rows: Rows, vector: list[dict[str, Any]]) -> dict[int, int]:
    """Multipliers by row, without zeros."""
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
    """The first row of a cost or resource, and the offset of each place's row from it."""
    if item["row"] == "cost":
        if rows.instance.objective == Objective.TOTAL:
            if item["of"] != Objective.TOTAL.value:
                raise ValueError(f"a cost {item['of']!r}")
            return rows.layout.cost, _ONE
        cost = rows.measures.costs.index(item["of"])
        return rows.layout.cost + cost * rows.cells.count, rows.cells.cell_of
    index = [resource.name for resource in rows.instance.resources].index(item["of"])
    parts = {Scope.RANK: rows.cells.cell_of, Scope.MACHINE: rows.cells.group_of}
    return rows.layout.resource[index], parts.get(rows.instance.resources[index].scope, _ONE)


def _row(rows: Rows, item: dict[str, Any]) -> int:
    """The row of a largest-shard, fusion or move item."""
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
