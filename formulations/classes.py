"""Equal tables: two of them exchanged leave a plan's costs and uses as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray


@dataclass(frozen=True, eq=False)
class Classes:
    """The tables of an instance, by what tells them apart.

    Attributes
    ----------
    members : list of int64 arrays
        The tables of each class; the first one leads it.
    """

    members: list[IntArray]

    @cached_property
    def leads(self) -> IntArray:
        """The first table of each class, int64 array [classes]."""
        return np.asarray([tables[0] for tables in self.members], dtype=np.int64)

    @cached_property
    def of(self) -> IntArray:
        """The class of each table, int64 array [tables]."""
        of = np.zeros(sum(map(len, self.members)), dtype=np.int64)
        for index, tables in enumerate(self.members):
            of[tables] = index
        return of

    @cached_property
    def times(self) -> IntArray:
        """How many tables a table stands for, those of the class that it leads or none, int64
        array [tables]."""
        times = np.zeros_like(self.of)
        times[self.leads] = [len(tables) for tables in self.members]
        return times


@lru_cache(maxsize=4)
def classes_of(instance: Instance) -> Classes:
    """The classes of an instance's equal tables; cached for the next calls with the same Instance.

    Their options are the same one after another, in every block and shard, in fusion and in what
    pins and ``forbidden`` allow, and so is the option in the plan in production; the ranks in it
    may differ, which matters where moves are limited. A table with pinned ranks is alone.
    """
    ends = instance.table_options
    blocks = instance.option_blocks[ends]
    shards = instance.block_shards[blocks]
    tables = np.arange(len(ends))
    own = np.zeros((instance.num_tables, 2), dtype=np.int64)
    for pin in instance.pins:
        own[pin.table, 0] = 0 if pin.ranks is None else 1 + pin.table
    for now in instance.current:
        own[now.table, 1] = 1 if now.option < 0 else 2 + now.option - int(ends[now.table])
    of_options = (
        instance.option_group, instance.option_level, instance.allowed,
        np.diff(instance.option_blocks),
    )  # fmt: skip
    of_blocks = (
        instance.block_where, instance.block_count, instance.block_distinct,
        instance.block_places, np.diff(instance.block_shards),
    )  # fmt: skip
    of_shards = (
        instance.shard_repeat, instance.shard_use, instance.shard_cost, instance.shard_move,
    )  # fmt: skip
    ways = (tables, (own,)), (ends, of_options), (blocks, of_blocks), (shards, of_shards)
    equal = equal_parts(*((at, values) for at, arrays in ways for values in arrays))
    return Classes([np.asarray(tables, dtype=np.int64) for tables in equal])


def classes_left(instance: Instance, keep: NDArray[np.bool_]) -> Classes:
    """The classes of equal tables of which the same options are kept, bool array [options]."""
    ends = instance.table_options
    of = classes_of(instance).of
    equal = equal_parts((np.arange(len(ends)), of), (ends, keep))
    return Classes([np.asarray(tables, dtype=np.int64) for tables in equal])


def interchangeable(instance: Instance, tables: IntArray) -> bool:
    """Whether a certificate may count some tables as one: equal ones, with equal names of options,
    none of which pins, ``forbidden`` or the plan in production name."""
    first, classes = instance.table_options, classes_of(instance)
    named = {now.table for now in instance.current} | {pin.table for pin in instance.pins}
    named |= {barred for barred, _ in instance.forbidden}
    names = {instance.option_names[first[t] : first[t + 1]] for t in tables.tolist()}
    classes_named = set(classes.of[tables].tolist())
    return len(names) == len(classes_named) == 1 and named.isdisjoint(tables.tolist())


def counted(
    instance: Instance, keep: NDArray[np.bool_], node: Mapping[str, Any]
) -> list[NDArray[np.bool_]]:
    """The options kept in both cases of a split by how many of some tables take some options: at
    most so many, which are then the first of them, or more; none where no more can, or where the
    tables may not be exchanged.

    Parameters
    ----------
    node : mapping
        The split as in a certificate's file: ``tables``, ``counted`` and ``most``.
    """
    tables, most, first = np.asarray(node["tables"]), node["most"], instance.table_options
    own = [keep[first[t] : first[t + 1]].tobytes() for t in tables.tolist()]
    alike = len({*own}) == 1 and len({*tables.tolist()}) == len(tables) > most
    if not alike or not interchangeable(instance, tables):
        return []
    some = np.zeros(len(own[0]), dtype=bool)
    some[node["counted"]] = True
    few, many = keep.copy(), keep.copy()
    for case, those, taken in ((few, tables[most:], ~some), (many, tables[: most + 1], some)):
        for start in first[those].tolist():
            case[start : start + len(some)] &= taken
    return [few, many]


def in_counts(instance: Instance, shares: NDArray[np.float64]) -> IntArray | None:
    """An option for each table: of equal tables as many take one as its shares add up to, and the
    options with the largest parts left take the rest; None where a table has no share.

    Parameters
    ----------
    shares : float array [options]
        How much of each table takes an option.
    """
    first = instance.table_options
    options = np.zeros(instance.num_tables, dtype=np.int64)
    for tables in classes_of(instance).members:
        own = np.arange(first[tables[0]], first[tables[0] + 1]) - first[tables[0]]
        taken = shares[np.add.outer(first[tables], own)].sum(axis=0)
        if not taken.any():
            return None
        taken *= len(tables) / taken.sum()
        whole = np.floor(taken + 1e-6).astype(np.int64)
        whole[np.argsort(whole - taken, kind="stable")[: len(tables) - whole.sum()]] += 1
        options[tables] = first[tables] + np.repeat(own, whole)
    return options


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
