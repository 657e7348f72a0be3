"""Whether shards can be packed into the ranks at all (the rule *packing* of docs/proof.md).

Sums of rows allow a shard to be cut in two. Where a few large shards must share few ranks, a case
that no sum of rows refutes is closed by trying every way to pack them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance
from formulations.proof.rows import Measures

#: Limits, each below what a checker accepts: how many combinations of options are formed, how many
#: of those whose sum fits are packed, and how many steps one measure gets. When a measure runs out
#: of them, those after it get half as many, but never fewer than ``_LEAST``.
_COMBINATIONS, _LIGHT, _STEPS, _LEAST = 2**14, 1_000, 300_000, 3_000
#: Packing is tried only with at most ``_FEW`` options left, at most ``_ITEMS`` shards that choose a
#: rank (each is one level of recursion), and ranks at least ``_FULL`` full on average.
_FEW, _FULL, _ITEMS = 400, 0.8, 100

#: Sizes, the largest first.
Items = tuple[int, ...]


class _TooMany(Exception):
    """There are more combinations or bins than the limits allow."""


class Packing:
    """Tries to refute cases of one instance.

    Parameters
    ----------
    instance : Instance
    measures : Measures
    steps : int, optional
        Most steps for the first measure.

    Attributes
    ----------
    spent : int
        About the most steps that a checker takes for the last case refuted: one for each item.
    """

    def __init__(self, instance: Instance, measures: Measures, steps: int = _STEPS) -> None:
        self._instance, self._measures = instance, measures
        costs, counted = len(measures.costs), measures.counted.tolist()
        self._columns = {instance.objective.value: counted} if counted else {}
        for column, resource in enumerate(measures.ranked, costs):
            self._columns.setdefault(instance.resources[resource].name, [column])
        self._known: dict[tuple[int, str], tuple[int, Items]] = {}
        self._patience = self._steps = steps
        self.spent = 0
        self._shards = np.zeros(instance.num_options, dtype=np.int64)
        owner = np.repeat(np.arange(instance.num_options), np.diff(instance.option_blocks))
        np.add.at(self._shards, owner, instance.block_count * instance.free)

    def refutes(self, keep: NDArray[np.bool_], limit: int | None) -> str | None:
        """Find a cost or resource for which no choice of options can be packed into the ranks.

        None: there is no such measure, or finding it takes too long.
        """
        if keep.sum() > _FEW or self._shards[keep].max(initial=0) > _ITEMS:
            return None
        for name, columns in self._columns.items():
            is_cost = columns[0] < len(self._measures.costs)
            most = limit if is_cost else int(self._measures.most[columns[0]])
            if most is not None and self._refuted(name, keep, most):
                return name
        return None

    def _refuted(self, name: str, keep: NDArray[np.bool_], most: int) -> bool:
        """Whether no choice of options can be packed; False also where the steps run out."""
        instance, self._steps = self._instance, self._patience
        choices = [
            {self._of(o, name) for o in instance.options_of(t) if keep[o]}
            for t in range(instance.num_tables)
        ]
        ranks = instance.num_ranks
        least = sum(min(f * ranks + sum(items) for f, items in own) for own in choices)
        if least < _FULL * ranks * most or prod(map(len, choices)) > _COMBINATIONS:
            return False
        try:
            pairs = _combinations(choices, ranks, most)
            if any(len(items) > _ITEMS for _, items in pairs):
                return False
            refuted = not any(self._fits(most - floor, items) for floor, items in pairs)
            longest = max((len(items) for _, items in pairs), default=0)
            self.spent = (self._patience - self._steps + len(pairs)) * (1 + longest)
            return refuted
        except _TooMany:
            self._patience = max(_LEAST, self._patience // 2)
            return False

    def _of(self, option: int, name: str) -> tuple[int, Items]:
        """Floor and items of an option."""
        if (option, name) not in self._known:
            instance, columns = self._instance, self._columns[name]
            items = list[int]()
            for block in map(instance.block, instance.blocks_of(option)):
                if instance.free[block.index]:
                    values = self._measures.value[:, columns].sum(axis=1)
                    items += [int(values[block.entry(i)]) for i in range(block.count)]
            floor = int(self._measures.floor[option, columns].sum())
            self._known[option, name] = floor, tuple(sorted(filter(None, items)))
        return self._known[option, name]

    def _fits(self, room: int, items: Items) -> bool:
        """Whether items go into as many bins as there are ranks."""
        known: dict[tuple[Items, int], bool] = {}

        def fit(items: Items, bins: int) -> bool:
            spare = bins * room - sum(items)
            if not items or spare < 0:
                return spare >= 0
            if (items, bins) not in known:
                ways = self._beside(items[1:], room - items[0], spare)
                known[items, bins] = any(fit(others, bins - 1) for others in ways)
            return known[items, bins]

        return room >= 0 and fit(items, self._instance.num_ranks)

    def _beside(self, items: Items, room: int, spare: int) -> Iterator[Items]:
        """The items left after some have filled a bin to within ``spare`` of its room, for each
        way to do so."""
        self._steps -= 1
        if self._steps < 0:
            raise _TooMany
        if room < 0 or room - sum(items) > spare:
            return
        if not items:
            yield ()
            return
        yield from self._beside(items[1:], room - items[0], spare)
        for others in self._beside(items[1:], room, spare):
            yield (items[0], *others)


def _combinations(
    choices: list[set[tuple[int, Items]]], ranks: int, most: int
) -> set[tuple[int, Items]]:
    """Summed floors, and items, of every choice of options whose total fits into all ranks."""
    sums = [[f * ranks + sum(items) for f, items in own] for own in map(list, choices)]
    order = sorted(range(len(sums)), key=lambda t: min(sums[t]) - max(sums[t]))
    rest, below = sum(map(min, sums)), [0]
    for t in order:  # the number of combinations follows from their sums alone
        rest -= min(sums[t])
        below = [b + s for b in below for s in sums[t] if b + s + rest <= ranks * most]
        if len(below) > _LIGHT:
            raise _TooMany
    rest = sum(map(min, sums))
    found: set[tuple[int, Items]] = {(0, ())}
    for t in order:
        rest -= min(sums[t])
        found = {
            (floor + f, tuple(sorted((*items, *more), reverse=True)))
            for floor, items in found for f, more in choices[t]
            if (floor + f) * ranks + sum(items) + sum(more) + rest <= ranks * most
        }  # fmt: skip
    return found
