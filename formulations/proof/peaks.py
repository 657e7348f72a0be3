"""Rows of peaks (docs/proof.md): what the ranks hold above the floors in two sets of phases, and
how high both peaks are then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.classes import equal_parts
from formulations.errors import InstanceError
from formulations.instance import Instance, IntArray
from formulations.instance.facts import per_option, shard_counts
from formulations.proof.portions import (
    FAR,
    Limits,
    Portion,
    cells,
    least_load,
    lists_of,
    undominated,
    worthwhile,
)  # fmt: skip
from formulations.proof.rows import measures

Phases = tuple[int, ...]
Mask = NDArray[np.bool_]
#: Largest product of steps, weights and portions that the judge works through (2^26 take 0.2 s).
_MOST = 2**26


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
    load, second_load : int64 arrays [entries]
        Load of a shard in each set, above the floor of its block.
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
    second_load: IntArray
    most: IntArray
    number: IntArray
    floor: IntArray
    suits: Mask

    @cached_property
    def steps(self) -> IntArray:
        """The load in the second set, in steps, int64 array [entries]."""
        return self.second_load // self.step

    @cached_property
    def option(self) -> IntArray:
        """The option of each entry, int64 array."""
        instance = self.instance
        return np.repeat(instance.option_of, np.diff(instance.block_shards))

    def portions(
        self, weight: IntArray, keep: Mask, limits: Limits, times: IntArray | None = None
    ) -> list[list[Portion]]:
        """What one rank may hold, as lists to choose at most one portion from: a list for each
        table, or fewer for tables that may hold the same.

        Parameters
        ----------
        weight : int64 array [entries]
        keep : bool array [options]
        limits : Limits
        times : int64 array [tables], optional
            How many tables like this there are; 1 by default.
        """
        few = (self.load <= limits.high) & (self.steps <= limits.steps)
        chosen = np.flatnonzero((weight > 0) & keep[self.option] & few)
        table = self.instance.table_of[self.option[chosen]]
        columns = (self.load, self.steps, weight, np.minimum(self.most, self.number))
        rows = np.stack([column[chosen] for column in columns], axis=1)
        ends = np.searchsorted(table, np.arange(self.instance.num_tables + 1))
        alike: dict[object, tuple[list[Portion], int]] = {}
        for equal in equal_parts((ends, rows)):
            part = slice(*ends[[equal[0], equal[0] + 1]])
            own = undominated(_portions(chosen[part].tolist(), rows[part].tolist(), limits))
            if own:
                key = tuple(portion[:3] for portion in own)
                known, number = alike.get(key, (own, 0))
                more = len(equal) if times is None else int(times[equal].sum())
                alike[key] = known, number + more
        left = worthwhile(list(alike.values()), limits)
        return [part for own, n in left if own for part in lists_of(own, n, limits)]


def _portions(entries: list[int], rows: list[list[int]], limits: Limits) -> Iterator[Portion]:
    """What a rank may hold of a table's entries, by their loads, steps, weights and numbers."""
    for entry, (load, steps, one, most) in zip(entries, rows, strict=True):
        for n in range(1, 1 + most):
            if n * load <= limits.high and n * steps <= limits.steps:
                yield Portion(n * load, n * steps, min(n * one, limits.most + 1), entry, n)


@lru_cache(maxsize=4)
def peaks_of(instance: Instance, first: Phases, second: Phases, step: int) -> Peaks:
    """Two sets of phases of an instance, cached for the next use; see :class:`Peaks`.

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
        second_load=above[:, list(second)].sum(axis=1),
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


def worths(
    least: IntArray, heights: Heights, step: int, ranks: int, gain: tuple[int, int, int]
) -> IntArray:
    """The most that a weight, whole steps and both heights add up to, by whole steps of the second
    height and by weight; -FAR where there is none, int64 array [steps, weights].

    Parameters
    ----------
    least : int64 array [steps, weights]
    heights : Heights
    step : int
    ranks : int
        What a weight of 1 adds: the number of ranks times its price.
    gain : tuple of int
        What a unit of each height adds, and a whole step of the second.
    """
    steps = np.arange(len(least))
    base = np.maximum(steps * step, heights.base)[:, None]
    low = np.maximum(least, heights.low)
    top = np.minimum(steps * step + step - 1, heights.top)[:, None]
    allowed = (low + base <= heights.room) & (least <= heights.high) & (base <= top)
    first, second = np.where(allowed, low, 0), np.where(allowed, base, 0)
    first, second = raised(first, second, heights, top, gain)
    worth = ranks * np.arange(least.shape[1]) + gain[0] * first + gain[1] * second
    return np.where(allowed, worth + gain[2] * steps[:, None], -FAR)


def raised(
    first: IntArray, second: IntArray, heights: Heights, top: Any, gain: tuple[Any, ...]
) -> tuple[IntArray, IntArray]:
    """Both heights, from at least these numbers, as high as it pays by what a unit of each adds;
    the second up to ``top``."""
    if gain[0] < gain[1]:
        if gain[1] > 0:
            second = np.minimum(top, heights.room - first)
        return (np.minimum(heights.high, heights.room - second) if gain[0] > 0 else first), second
    if gain[0] > 0:
        first = np.minimum(heights.high, heights.room - second)
    return first, (np.minimum(top, heights.room - first) if gain[1] > 0 else second)


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
        self._loads = row.get("loads", [0, 0, 0])
        self._weight = np.zeros(len(instance.shard_cost), dtype=np.int64)
        self._weigh(row["weights"])
        if len(self._loads) != 3:
            raise InstanceError("a row of peaks has three prices of loads")
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
        one = self._each * self._weight.astype(object)
        for price, load in zip(
            self._loads, (peaks.load, peaks.second_load, peaks.steps), strict=True
        ):
            one = one + price * load.astype(object)
        price = per_option(peaks.instance, one * peaks.number.astype(object))
        return np.asarray((price + self._times * peaks.floor.astype(object))[options])

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
        tables = peaks.portions(self._weight, keep, limits)
        loads = [price * instance.num_ranks for price in self._loads]
        gain = loads[0] - self._times, loads[1] - self._times, loads[2]
        large = max(*map(abs, gain[:2]), loads[2] // peaks.step) * max(1, heights.room) >= FAR
        if large or cells(sum(map(len, tables)), limits) > _MOST:
            raise InstanceError("a row of peaks that is too large for the judge")
        least = least_load(tables, limits)
        if int(least[:, -1].min()) <= heights.high:
            return inf
        ranks = self._each * instance.num_ranks
        return self._times * limit + int(worths(least, heights, peaks.step, ranks, gain).max())
