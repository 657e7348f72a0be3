"""Fusion components: tables that share levels, and their cheapest choices at every tuple."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from formulations.instance import Instance
from formulations.proof.weights import BigArray

#: Tables times level tuples looked at in a component; groups beyond it are let go (docs/proof.md).
MAX_WORK = 200_000
_INF = float("inf")


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
    """Tables that share levels, with their cheapest prices at every tuple of levels.

    Parameters
    ----------
    instance : Instance
    prices : object array [options]
        Python integers; inf where there is no place.
    keep : bool array [options]
    tables, groups : lists of int
        From :func:`components`.
    """

    def __init__(
        self, instance: Instance, prices: BigArray, keep: np.ndarray,
        tables: list[int], groups: list[int],
    ) -> None:  # fmt: skip
        levels = {g: np.unique(instance.option_level[keep & (instance.option_group == g)]).tolist()
                  for g in groups}  # fmt: skip
        self._held = _held_groups(instance, levels, len(tables))
        tuples = list(product(*(levels[g] for g in self._held)))
        self._tuples = np.asarray(tuples, dtype=np.int64).reshape(len(tuples), len(self._held))
        self._instance, self._prices = instance, prices
        self._options = {t: [o for o in instance.options_of(t) if keep[o]] for t in tables}
        self._rows = {t: self._row(t) for t in tables}
        nothing: BigArray = np.zeros(len(self._tuples), dtype=object)
        self._sum = sum(self._rows.values(), nothing)

    @property
    def least(self) -> Any:
        """The cheapest choice for all tables over all level tuples; inf when there is none."""
        return self._sum.min()

    def forced(self) -> Iterator[tuple[int, Any]]:
        """Every option kept, with the least when its table must use it."""
        for table, options in self._options.items():
            for option in options:
                if self._prices[option] == _INF:
                    yield option, _INF
                    continue
                at = self._at(option)
                rest = self._sum[at] - self._rows[table][at]
                yield option, rest.min() + self._prices[option] if len(rest) else _INF

    def _row(self, table: int) -> BigArray:
        row: BigArray = np.full(len(self._tuples), _INF, dtype=object)
        for option in self._options[table]:
            at = self._at(option)
            row[at] = np.minimum(row[at], self._prices[option])
        return row

    def _at(self, option: int) -> Any:
        """The level tuples an option allows, as an index."""
        group = int(self._instance.option_group[option])
        if group not in self._held:
            return slice(None)
        return self._tuples[:, self._held.index(group)] == self._instance.option_level[option]


def _held_groups(instance: Instance, levels: dict[int, list[int]], tables: int) -> list[int]:
    held: list[int] = []
    work = tables
    for group in sorted(levels, key=lambda g: (len(levels[g]), instance.fusion_groups[g])):
        work *= len(levels[group])
        if work > MAX_WORK:
            break
        held.append(group)
    return held
