"""What one rank may hold: portions of tables, added one after another, and the least load by steps
and by weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from formulations.instance import IntArray

#: Above every load that counts; sums with one more load still fit in 64 bits.
FAR = 2**61


class Portion(NamedTuple):
    """Shards of one option on one rank: load in the first set of phases, steps in the second,
    weight; and which shards they are."""

    load: int
    steps: int
    weight: int
    entry: int
    copies: int


class Limits(NamedTuple):
    """The highest load in the first set of phases, most steps in the second, largest weight that
    is told apart."""

    high: int
    steps: int
    most: int


def undominated(portions: Iterable[Portion]) -> list[Portion]:
    """Portions that are heavier than any other that takes no more of both."""
    kept = list[Portion]()
    for one in sorted(portions, key=lambda p: (p.load, p.steps, -p.weight)):
        if not any(k.steps <= one.steps and k.weight >= one.weight for k in kept):
            kept.append(one)
    return kept


def worthwhile(
    classes: list[tuple[list[Portion], int]], limits: Limits
) -> list[tuple[list[Portion], int]]:
    """Portions of classes of tables, with the number of tables, without those that are no heavier
    than some number of another one that takes no more of both, of which there are always more."""
    pool: dict[tuple[int, ...], int] = {}  # by the first class that has it
    for at, (own, n) in enumerate(classes):
        if n >= _times(_least(own), limits):
            for p in own:
                pool.setdefault(p[:3], at)
    others = np.asarray(list(pool), dtype=np.int64).reshape(-1, 3)

    def needed(at: int, one: Portion) -> bool:
        times = np.full(len(pool), limits.most + 1 if one.load or one.steps else 1)
        for i in (0, 1):
            fit = one[i] // np.maximum(1, others[:, i])
            times = np.where(others[:, i] > 0, np.minimum(times, fit), times)
        better = (times * others[:, 2] >= one.weight) & (others != one[:3]).any(axis=1)
        return pool.get(one[:3], at) == at and not better.any()

    return [([p for p in own if needed(at, p)], n) for at, (own, n) in enumerate(classes)]


def _least(portions: list[Portion]) -> Portion:
    """The least of each number of some portions."""
    load, steps, weight = (min(p[i] for p in portions) for i in range(3))
    return Portion(load, steps, weight, 0, 0)


def lists_of(portions: list[Portion], tables: int, limits: Limits) -> list[list[Portion]]:
    """What a rank may hold of tables that may each hold the same, as lists to choose at most one
    portion from.

    Where more portions than there are tables never fit, or weigh no more than is told apart, each
    portion counts by itself: 1, 2, 4, … times.
    """
    most = _times(_least(portions), limits)
    if tables < most and len(portions) > 1:
        return [portions] * tables
    found = []
    for p in portions:
        left, n = min(tables, _times(p, limits)), 1
        while left > 0:
            n = min(n, left)
            heavy = min(n * p.weight, limits.most + 1)
            found.append([Portion(n * p.load, n * p.steps, heavy, p.entry, n * p.copies)])
            left, n = left - n, 2 * n
    most = min(tables, most)
    return found if len(found) < most * len(portions) else [portions] * most


def _times(one: Portion, limits: Limits) -> int:
    """How often a portion fits, or until it weighs more than is told apart."""
    times = -(-(limits.most + 1) // one.weight)
    times = min(times, limits.high // one.load) if one.load else times
    return min(times, limits.steps // one.steps) if one.steps else times


@dataclass(frozen=True, eq=False)
class Least:
    """The least load of one rank, by steps and by weight.

    Attributes
    ----------
    load : int64 array [steps + 1, most + 2]
        The least load in the first set of phases of shards that take so many steps at most in the
        second, and weigh so much or more; FAR where there are none.
    stages : list of (int64 array, int, list of Portion)
        The arrays before each table, the largest weight in them, and what was added.
    """

    load: IntArray
    stages: list[tuple[IntArray, int, list[Portion]]]

    def pattern(self, steps: int, weight: int) -> dict[int, int]:
        """Shards of one rank that attain a value: copies by entry."""
        found: dict[int, int] = {}
        now = int(self.load[steps, weight])
        for before, reach, portions in reversed(self.stages):
            if weight <= reach and before[steps, weight] == now:
                continue
            for p in portions:
                rest = max(0, weight - p.weight)
                if p.steps > steps or rest > reach:
                    continue
                if before[steps - p.steps, rest] + p.load == now:
                    found[p.entry] = found.get(p.entry, 0) + p.copies
                    steps, weight, now = steps - p.steps, rest, now - p.load
                    break
        return found


def least_loads(tables: list[list[Portion]], limits: Limits, space: IntArray) -> Least:
    """Add the portions of one table after another: at most one of each.

    ``space`` is an int64 array of at least :func:`cells` cells.
    """
    rows, size = limits.steps + 1, limits.most + 2
    parts = space[: cells(len(tables), limits)].reshape(-1, rows, size)
    reach, stages = 0, []
    parts[0][:, 0] = 0
    for i, portions in enumerate(tables):
        stages.append((parts[i], reach, portions))
        reach = _add(parts[i], parts[i + 1], parts[-1], portions, reach)
    parts[-2][:, reach + 1 :] = FAR
    return Least(parts[-2], stages)


def least_load(tables: list[list[Portion]], limits: Limits) -> IntArray:
    """The same array alone, with less memory."""
    old, new, spare = np.empty((3, limits.steps + 1, limits.most + 2), dtype=np.int64)
    reach = 0
    old[:, 0] = 0
    for portions in tables:
        reach = _add(old, new, spare, portions, reach)
        old, new = new, old
    old[:, reach + 1 :] = FAR
    return old


def _add(old: IntArray, new: IntArray, spare: IntArray, portions: list[Portion], reach: int) -> int:
    """Add portions to what a rank holds, known up to a weight; the largest weight then. Later
    columns are not written."""
    rows, size = old.shape
    end = min(size - 1, reach + max(p.weight for p in portions))
    new[:, : reach + 1] = old[:, : reach + 1]
    new[:, reach + 1 : end + 1] = FAR
    for p in portions:
        many, wide = rows - p.steps, min(reach, size - 1 - p.weight) + 1
        better, moved = new[p.steps :], spare.reshape(-1)[: many * wide].reshape(many, wide)
        np.add(old[:many, :wide], p.load, out=moved)
        part = better[:, p.weight : p.weight + wide]
        np.minimum(part, moved, out=part)
        part = better[:, : p.weight]
        np.minimum(part, p.load, out=part)
    return end


def cells(tables: int, limits: Limits) -> int:
    """Cells of memory that :func:`least_loads` needs."""
    return (tables + 2) * (limits.steps + 1) * (limits.most + 2)
