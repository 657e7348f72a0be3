"""Fusion components: tables that share a level, and the cheapest level for all of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from formulations.instance import Instance

#: Level tuples times tables examined per component. Beyond it the groups with most levels are
#: relaxed: their tables may differ in level, which can only make the minimum smaller.
MAX_WORK = 2_000_000


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


def least_component(
    instance: Instance, values: np.ndarray, keep: np.ndarray, tables: list[int], groups: list[int]
) -> int | None:
    """Cheapest choice for the tables of one component, over all its level tuples.

    Parameters
    ----------
    values : object array [options] of int
    keep : bool array [options]
    tables, groups : lists of int
        From :func:`components`.

    Returns
    -------
    int or None
        None when some table has no option at all.
    """
    levels = {g: _levels(instance, keep, g) for g in groups}
    held = _held_groups(levels, len(tables))
    rows = [_Row(instance, values, keep, t, held) for t in tables]
    if any(row.empty for row in rows):
        return None
    best: int | None = None
    for choice in product(*(levels[g] for g in held)):
        total = 0
        for row in rows:
            least = row.least(dict(zip(held, choice, strict=True)))
            if least is None:
                break
            total += least
        else:
            best = total if best is None else min(best, total)
    return best


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


class _Row:
    """Least value of one table: free of any held group, and per (group, level)."""

    def __init__(
        self,
        instance: Instance,
        values: np.ndarray,
        keep: np.ndarray,
        table: int,
        held: list[int],
    ) -> None:
        self._free: Any = None
        self._at: dict[tuple[int, int], Any] = {}
        for option in instance.options_of(table):
            if not keep[option]:
                continue
            group, value = int(instance.option_group[option]), values[option]
            if group not in held:
                self._free = value if self._free is None else min(self._free, value)
            else:
                key = (group, int(instance.option_level[option]))
                self._at[key] = min(self._at.get(key, value), value)

    @property
    def empty(self) -> bool:
        return self._free is None and not self._at

    def least(self, level: dict[int, int]) -> int | None:
        """Least value when the held groups are at these levels."""
        best = self._free
        for item in level.items():
            value = self._at.get(item)
            if value is not None and (best is None or value < best):
                best = value
        return None if best is None else int(best)
