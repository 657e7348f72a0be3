"""Fusion components: tables that share a level, and the cheapest level for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from formulations.instance import Instance

#: Level tuples times tables examined per component. Beyond it the groups with most levels are
#: relaxed: their tables may differ in level, which can only make the minimum smaller.
MAX_WORK = 2_000_000
#: Stands for "no such choice" in sums of Python integers.
_NEVER = 2**200

#: Arrays of Python integers: prices times bytes leave 64 bits.
BigArray = np.ndarray[Any, np.dtype[np.object_]]


def components(instance: Instance, keep: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Tables linked by fusion groups, with those groups: [(tables, groups)].

    Parameters
    ----------
    instance : Instance
    keep : bool array [options]
        Options still in the game; groups nobody can choose link nothing.
    """
    parent = list(range(instance.num_tables + len(instance.fusion_groups)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    linked = np.flatnonzero(keep & (instance.option_group >= 0))
    pairs = np.unique(
        np.stack([instance.table_of[linked], instance.option_group[linked]], axis=1), axis=0
    )
    for table, group in pairs.tolist():
        parent[root(table)] = root(instance.num_tables + group)
    found: dict[int, tuple[list[int], list[int]]] = {}
    for table in range(instance.num_tables):
        found.setdefault(root(table), ([], []))[0].append(table)
    for group in np.unique(pairs[:, 1]).tolist():
        found[root(instance.num_tables + group)][1].append(group)
    return list(found.values())


class Component:
    """Tables that share levels, with their cheapest values at every tuple of levels.

    Parameters
    ----------
    instance : Instance
    values : object array [options] of int
    keep : bool array [options]
    tables, groups : lists of int
        From :func:`components`.
    """

    def __init__(
        self, instance: Instance, values: np.ndarray, keep: np.ndarray,
        tables: list[int], groups: list[int],
    ) -> None:  # fmt: skip
        levels = {g: _levels(instance, keep, g) for g in groups}
        self._held = _held_groups(levels, len(tables))
        tuples = list(product(*(levels[g] for g in self._held)))
        self._tuples = np.asarray(tuples, dtype=np.int64).reshape(len(tuples), len(self._held))
        self._instance, self._values = instance, values
        self._options = {t: [o for o in instance.options_of(t) if keep[o]] for t in tables}
        self._rows = {t: self._row(t) for t in tables}
        nothing: BigArray = np.zeros(len(self._tuples), dtype=object)
        self._sum = sum(self._rows.values(), nothing)

    @property
    def least(self) -> int | None:
        """The cheapest choice for all tables over all level tuples; None when there is none."""
        return _known(self._sum.min())

    def forced(self) -> Iterator[tuple[int, int | None]]:
        """Every option kept, with the least when its table must use it."""
        for table, options in self._options.items():
            rest = self._sum - self._rows[table]
            for option in options:
                yield option, _known(rest[self._at(option)].min() + self._values[option])

    def _row(self, table: int) -> BigArray:
        """Least value of one table at every tuple."""
        row: BigArray = np.full(len(self._tuples), _NEVER, dtype=object)
        for option in self._options[table]:
            at = self._at(option)
            row[at] = np.minimum(row[at], int(self._values[option]))
        return row

    def _at(self, option: int) -> Any:
        """The level tuples an option allows, as an index."""
        group = int(self._instance.option_group[option])
        if group not in self._held:
            return slice(None)
        return self._tuples[:, self._held.index(group)] == self._instance.option_level[option]


def _known(value: Any) -> int | None:
    return None if value >= _NEVER else int(value)


def _levels(instance: Instance, keep: np.ndarray, group: int) -> list[int]:
    found: list[int] = np.unique(
        instance.option_level[keep & (instance.option_group == group)]
    ).tolist()
    return found


def _held_groups(levels: dict[int, list[int]], tables: int) -> list[int]:
    held: list[int] = []
    work = tables
    for group in sorted(levels, key=lambda g: len(levels[g])):
        work *= len(levels[group])
        if work > MAX_WORK:
            break
        held.append(group)
    return held
