"""Equal tables: those that add the same to all rows, or whose parts of some arrays are the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import IntArray
from formulations.instance.facts import members
from formulations.proof.rows import Rows


def choices_of(rows: Rows, table: int) -> IntArray:
    """The choices of a table: its options, then the places of its slots."""
    options = rows.instance.options_of(table)
    first, last = rows.slot_start[_slots(rows, options)].tolist()
    return np.concatenate([np.arange(options.start, options.stop), np.arange(first, last)])


def _slots(rows: Rows, options: range) -> IntArray:
    """The first slot of some options, and the first one after them."""
    return np.searchsorted(rows.slot_option, [options.start, options.stop])


def equal_tables(rows: Rows) -> list[list[int]]:
    """The classes of equal tables, by their first ones."""
    instance, layout = rows.instance, rows.layout
    row, tables = rows.row.copy(), max(1, instance.num_tables)
    own = (row >= layout.chief) & (row < layout.moved_tables)
    row[own] -= (row[own] - layout.chief) % tables
    levels: dict[tuple[int, int], int] = {}
    fused = [levels.setdefault(key[1:], len(levels)) for key in rows.fused]
    own = row >= layout.fusion
    row[own] = layout.fusion + np.asarray([*fused, 0])[row[own] - layout.fusion]
    length, places = np.diff(rows.start), np.diff(rows.slot_start)
    classes: dict[tuple[bytes, ...], list[int]] = {}
    for table in range(instance.num_tables):
        options = instance.options_of(table)
        slots, at = slice(*_slots(rows, options)), choices_of(rows, table)
        terms = members(rows.start, at)[0]
        key = (
            length[at].tobytes(), row[terms].tobytes(), rows.amount[terms].tobytes(),
            rows.possible[options.start : options.stop].tobytes(),
            (rows.slot_option[slots] - options.start).tobytes(), rows.slot_times[slots].tobytes(),
            places[slots].tobytes(),
        )  # fmt: skip
        classes.setdefault(key, []).append(table)
    return list(classes.values())


def equal_parts(*arrays: tuple[IntArray, NDArray[Any]]) -> list[list[int]]:
    """The classes of tables whose parts are the same in every array.

    Parameters
    ----------
    arrays : pairs of int64 array [tables + 1] and array
        Where each table's part of the array begins and ends, and the array.
    """
    classes: dict[tuple[bytes, ...], list[int]] = {}
    ends = zip(*(pairwise(offsets.tolist()) for offsets, _ in arrays), strict=True)
    for table, parts in enumerate(ends):
        own = zip(parts, arrays, strict=True)
        key = tuple(values[low:high].tobytes() for (low, high), (_, values) in own)
        classes.setdefault(key, []).append(table)
    return list(classes.values())


def table_of_row(rows: Rows, row: int) -> int:
    """The table whose largest shard a row is about."""
    return (row - rows.layout.chief) % rows.instance.num_tables


def rows_of_each(rows: Rows, row: int, classes: dict[int, list[int]]) -> list[int]:
    """The rows that are what a row is for the first table of a class, one for each of its tables;
    the row alone where it is about no table."""
    layout = rows.layout
    if layout.chief <= row < layout.moved_tables:
        first = table_of_row(rows, row)
        return [row - first + table for table in classes[first]]
    if row >= layout.fusion:
        first, group, level = rows.fused[row - layout.fusion]
        return [layout.fusion + rows.fused.index((t, group, level)) for t in classes[first]]
    return [row]
