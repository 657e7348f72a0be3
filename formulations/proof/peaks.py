"""Rows of peaks (docs/proof.md): what the ranks hold above the floors in two sets of phases, and
how high both peaks are then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.errors import InstanceError
from formulations.instance import Instance, IntArray
from formulations.instance.facts import per_option, shard_counts
from formulations.proof.rows import measures

Phases = tuple[int, ...]
Mask = NDArray[np.bool_]
#: Above every load that counts; sums with one more load still fit in 64 bits.
FAR = 2**61
#: Largest product of steps, weights and tables that the judge works through (2^24 take 0.2 s).
_MOST = 2**24


class Portion(NamedTuple):
    """Shards of one option on one rank: load in the first set of phases, steps in the second,
    weight; and which shards they are."""

    load: int
    steps: int
    weight: int
    entry: int
    copies: int


@dataclass(frozen=True, eq=False)
class Peaks:
    """Two sets of phases of an instance whose peaks are limited.

    Attributes
    ----------
    instance : Instance
    first, second : tuple of int
        Disjoint sets of phases of which nothing is hidden.
    step : int
        Loads in the second set are rounded down to multiples of it.
    load, steps : int64 arrays [entries]
        Load of a shard above the floor of its block; that in the second set, in steps.
    most, number : int64 arrays [entries]
        Shards that a rank may hold, and that a plan with the option has.
    floor : int64 array [options]
        What the option puts on every rank, summed over all such phases.
    suits : bool array [options]
        Options of one block whose shards are all alike, or on different ranks.
    """

    instance: Instance
    first: Phases
    second: Phases
    step: int
    load: IntArray
    steps: IntArray
    most: IntArray
    number: IntArray
    floor: IntArray
    suits: Mask

    @cached_property
    def option(self) -> IntArray:
        """The option of each entry, int64 array."""
        instance = self.instance
        return np.repeat(instance.option_of, np.diff(instance.block_shards))

    def portions(self, weight: IntArray, keep: Mask, limits: Limits) -> list[list[Portion]]:
        """What one rank may hold of each table, without what is dominated.

        Parameters
        ----------
        weight : int64 array [entries]
        keep : bool array [options]
        limits : Limits
        """
        few = (self.load <= limits.high) & (self.steps <= limits.steps)
        chosen = np.flatnonzero((weight > 0) & keep[self.option] & few)
        table = self.instance.table_of[self.option[chosen]]
        columns = (self.load, self.steps, weight, np.minimum(self.most, self.number))
        found: list[list[Portion]] = [[] for _ in range(self.instance.num_tables)]
        rows = zip(table.tolist(), chosen.tolist(), *(c[chosen].tolist() for c in columns),
                   strict=True)  # fmt: skip
        for t, entry, load, steps, one, most in rows:
            for n in range(1, 1 + most):
                if n * load <= limits.high and n * steps <= limits.steps:
                    heavy = min(n * one, limits.most + 1)
                    found[t].append(Portion(n * load, n * steps, heavy, entry, n))
        return [undominated(own) for own in found]


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


def peaks_of(instance: Instance, first: Phases, second: Phases, step: int) -> Peaks:
    """Two sets of phases of an instance; see :class:`Peaks`.

    Raises
    ------
    InstanceError
        When the sets do not suit the instance.
    """
    measured = measures(instance)
    known = set(measured.counted.tolist())
    if not first or step < 1 or set(first) & set(second) or not {*first, *second} <= known:
        raise InstanceError(
            "peaks are of two disjoint sets of phases, of which nothing is hidden, or of the "
            "busiest rank"
        )
    value = measured.value[:, : len(measured.costs)]
    runs = np.diff(instance.block_shards)
    listed = _on_all_ranks(instance)
    covers = instance.everywhere | (instance.whole & (len(instance.machines) == 1)) | listed
    least = np.minimum.reduceat(value, instance.block_shards[:-1]) * covers[:, None]
    own = (least * listed[:, None])[:, measured.counted].sum(axis=1)
    above = value - np.repeat(least, runs, axis=0)
    once = instance.block_distinct | instance.everywhere | (instance.settled & ~instance.unplaced)
    most = np.repeat(np.where(once, 1, np.maximum(instance.block_count, 1)), runs)
    alike = (np.diff(instance.option_blocks) == 1) & (per_option(instance, np.ones_like(most)) == 1)
    suits = (np.diff(instance.option_blocks) == 1) & (alike | once[instance.option_blocks[:-1]])
    return Peaks(
        instance, first, second, step,
        load=above[:, list(first)].sum(axis=1),
        steps=above[:, list(second)].sum(axis=1) // step,
        most=most,
        number=np.where(instance.off_rank, 0, shard_counts(instance)),
        floor=measured.floor[:, measured.counted].sum(axis=1)
        + np.add.reduceat(own, instance.option_blocks[:-1]),
        suits=suits,
    )  # fmt: skip


def _on_all_ranks(instance: Instance) -> Mask:
    """Blocks whose list of ranks names all of them, bool array [blocks]: the checker counts their
    floor as that of blocks on every rank."""
    sizes = np.asarray([len(places) for places in (*instance.place_sets, ())])
    many = sizes[instance.block_places] == instance.num_ranks
    return instance.listed & many


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


def least_loads(
    tables: Iterable[list[Portion]], limits: Limits, space: IntArray | None = None
) -> Least:
    """Add the portions of one table after another: at most one of each.

    ``space``, an int64 array of at least :func:`cells` cells, saves new memory for every call.
    """
    kept = [portions for portions in tables if portions]
    rows, size = limits.steps + 1, limits.most + 2
    if space is None:
        space = np.empty((len(kept) + 2) * rows * size, dtype=np.int64)
    each = rows * size
    stage = [space[i * each : (i + 1) * each].reshape(rows, size) for i in range(len(kept) + 1)]
    spare = space[(len(kept) + 1) * each :]
    reach, stages = 0, []  # the largest weight so far; later columns are not written yet
    stage[0][:, 0] = 0
    for old, new, portions in zip(stage, stage[1:], kept, strict=False):
        end = min(size - 1, reach + max(p.weight for p in portions))
        new[:, : reach + 1] = old[:, : reach + 1]
        new[:, reach + 1 : end + 1] = FAR
        for p in portions:
            many, wide = rows - p.steps, min(reach, size - 1 - p.weight) + 1
            better, moved = new[p.steps :], spare[: many * wide].reshape(many, wide)
            np.add(old[:many, :wide], p.load, out=moved)
            part = better[:, p.weight : p.weight + wide]
            np.minimum(part, moved, out=part)
            part = better[:, : p.weight]
            np.minimum(part, p.load, out=part)
        stages.append((old, reach, portions))
        reach = end
    stage[-1][:, reach + 1 :] = FAR
    return Least(stage[-1], stages)


def cells(tables: int, limits: Limits) -> int:
    """Cells of memory that :func:`least_loads` needs."""
    return (tables + 2) * (limits.steps + 1) * (limits.most + 2)


@dataclass(frozen=True)
class Heights:
    """What a case leaves of both heights: from ``low`` to ``high`` in the first set of phases, from
    ``base`` to ``top`` in the second; together at most ``room``."""

    low: int
    high: int
    base: int
    top: int
    room: int

    @classmethod
    def within(cls, first: tuple[int, int], second: tuple[int, int], room: int) -> Heights:
        """Intervals of both heights, narrowed by what is left for both together."""
        (low, high), (base, top) = first, second
        return cls(low, min(high, room - base), base, min(top, room - low), room)

    @property
    def empty(self) -> bool:
        """Whether no plan is like this."""
        return self.low > self.high or self.base > self.top


def highest(
    least: IntArray, heights: Heights, step: int, ranks: int, times: int
) -> tuple[int, int, int]:
    """The most that ``ranks`` times a weight exceeds ``times`` both heights; its steps and its
    weight.

    Parameters
    ----------
    least : int64 array [steps, weights]
    heights : Heights
    step : int
    ranks, times : int
        The number of ranks times the price of a weight of 1, and the multiplier of the heights.
    """
    second = np.maximum(np.arange(len(least)) * step, heights.base)[:, None]
    both = np.maximum(least, heights.low) + second
    allowed = (both <= heights.room) & (least <= heights.high)
    worth = ranks * np.arange(least.shape[1]) - times * np.where(allowed, both, 0)
    value = np.where(allowed, worth, -FAR)
    at = int(value.argmax())
    steps, weight = divmod(at, least.shape[1])
    return int(value[steps, weight]), steps, weight


def sets_of(instance: Instance, row: dict[str, Any]) -> tuple[Phases, Phases]:
    """Both sets of phases that a row of a certificate names.

    Raises
    ------
    InstanceError
        When a phase is not there, or named twice.
    """
    known, sets = measures(instance).costs, []
    for names in (row["first"], row["second"]):
        if len(set(names)) < len(names) or not set(names) <= set(known):
            raise InstanceError("peaks of phases that are not there")
        sets.append(tuple(sorted(known.index(name) for name in names)))
    return sets[0], sets[1]


class Row:
    """A row of peaks in a certificate, for the judge.

    Raises
    ------
    InstanceError
        When it names what is not there, or an option that is not simple enough for these arrays.
    """

    def __init__(self, instance: Instance, row: dict[str, Any]) -> None:
        sets = sets_of(instance, row)
        self._peaks = peaks_of(instance, sets[0], sets[1], row["step"])
        self._most, self._each, self._times = row["most"], row["each"], row["times"]
        self._weight = np.zeros(len(instance.shard_cost), dtype=np.int64)
        self._weigh(row["weights"])
        if self._each * instance.num_ranks * (self._most + 2) >= FAR:
            raise InstanceError("a row of peaks with large numbers")

    def _weigh(self, weights: list[list[int]]) -> None:
        """Read the weights; every shard that weighs must belong to a simple option."""
        instance, seen = self._peaks.instance, set[tuple[int, ...]]()
        for table, option, shard, weight in weights:
            at = int(instance.table_options[table]) + option if table < instance.num_tables else -1
            if not 0 <= at < instance.table_options[table + 1] or (table, option, shard) in seen:
                raise InstanceError("a row of peaks weighs what is not there, or twice")
            seen.add((table, option, shard))
            first, end = instance.block_shards[instance.option_blocks[[at, at + 1]]].tolist()
            if first + shard >= end or not self._peaks.suits[at] or weight >= FAR:
                raise InstanceError("a row of peaks weighs what the judge cannot read")
            self._weight[first + shard] = weight

    @property
    def sets(self) -> tuple[Phases, Phases]:
        """Both sets of phases."""
        return self._peaks.first, self._peaks.second

    def fits(self) -> Mask:
        """Options that may be in a plan for which the row counts, bool array [options]: all."""
        return np.ones(self._peaks.instance.num_options, dtype=bool)

    def prices(self, options: IntArray) -> NDArray[np.object_]:
        """What options add to the left-hand side, object array of int."""
        peaks = self._peaks
        number = peaks.number.astype(object)
        weight = per_option(peaks.instance, self._weight.astype(object) * number)
        price = self._times * peaks.floor.astype(object) + self._each * weight
        return np.asarray(price[options])

    def most(
        self, keep: Mask, limit: int, first: tuple[int, int], second: tuple[int, int]
    ) -> int | float:
        """The right-hand side for the options kept and these intervals of both heights: infinite if
        a rank may hold more than the row says, minus infinite if no plan has such heights."""
        peaks, instance = self._peaks, self._peaks.instance
        floors = np.where(keep, peaks.floor, FAR)
        room = limit - int(np.minimum.reduceat(floors, instance.table_options[:-1]).sum())
        heights = Heights.within(first, second if peaks.second else (0, 0), room)
        if heights.empty:
            return -inf
        limits = Limits(heights.high, heights.top // peaks.step, self._most)
        large = self._times * max(1, heights.room) >= FAR
        if large or cells(instance.num_tables, limits) > _MOST:
            raise InstanceError("a row of peaks that is too large for the judge")
        least = least_loads(peaks.portions(self._weight, keep, limits), limits).load
        if int(least[:, -1].min()) <= heights.high:
            return inf
        ranks = self._each * instance.num_ranks
        best, _, _ = highest(least, heights, peaks.step, ranks, self._times)
        return self._times * limit + best
