"""Dual-feasible functions (docs/proof.md): what shards of one rank add up to at most, and rows of
them in boxes of peaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.errors import InstanceError
from formulations.instance import Instance, IntArray
from formulations.instance.facts import members, per_option
from formulations.proof.peaks import FAR, Heights, Mask, Phases, peaks_of, sets_of
from formulations.proof.rows import measures

#: Sizes of bins, and their products with steps, stay below this, so that arrays hold them.
_LARGE = 2**62


@dataclass(frozen=True, eq=False)
class Loads:
    """Loads of shards above the floors in two sets of phases, and their use of rank resources.

    Attributes
    ----------
    first, second : tuple of int
        Disjoint sets of costs of which nothing is hidden.
    costs, resources : tuple of str
        Names of all costs, and of the resources of scope rank.
    own : int64 array [entries, 2 + resources]
        Loads in both sets, and uses.
    number : int64 array [entries]
        Shards of each entry that a plan with its option has at least.
    floor : int64 array [options]
        What the option puts on every rank, summed over all such costs.
    largest : int64 array [options, 2]
        The largest load of a shard in both sets.
    capacity : list of int
        The largest capacity of a rank, of each of the resources.
    table_options, entry_offsets : int64 arrays
        First option of each table, and first entry of each option.
    ranks : int
    """

    first: Phases
    second: Phases
    costs: tuple[str, ...]
    resources: tuple[str, ...]
    own: IntArray
    number: IntArray
    floor: IntArray
    largest: IntArray
    capacity: list[int]
    table_options: IntArray
    entry_offsets: IntArray
    ranks: int

    def fits(self, bins: tuple[int, int]) -> Mask:
        """Options of which no shard is larger than a bin, bool array [options]."""
        return np.asarray((self.largest <= np.asarray(bins)).all(axis=1))

    def room(self, keep: Mask, limit: int) -> int:
        """What plans that cost at most ``limit`` leave for both heights."""
        floors = np.where(keep, self.floor, FAR)
        return limit - int(np.minimum.reduceat(floors, self.table_options[:-1]).sum())

    def entries(self, options: IntArray) -> tuple[IntArray, IntArray]:
        """The entries of some options, and the position of each one's option among these."""
        found, ends = members(self.entry_offsets, options)
        return found, np.repeat(np.arange(len(options)), np.diff(ends))


@lru_cache(maxsize=4)
def loads_of(instance: Instance, first: Phases, second: Phases) -> Loads:
    """Loads in two sets of phases of an instance; see :class:`Loads`.

    Raises
    ------
    InstanceError
        When the sets do not suit the instance.
    """
    peaks, measured = peaks_of(instance, first, second, 1), measures(instance)
    costs = len(measured.costs)
    own = np.concatenate([np.stack([peaks.load, peaks.steps], axis=1), measured.value[:, costs:]],
                         axis=1)  # fmt: skip
    own[peaks.number == 0] = 0
    return Loads(
        first, second, measured.costs, tuple(instance.resources[i].name for i in measured.ranked),
        own, peaks.number, peaks.floor, per_option(instance, own[:, :2], np.maximum),
        measured.most[costs:].tolist(), instance.table_options,
        instance.block_shards[instance.option_blocks], instance.num_ranks,
    )  # fmt: skip


class Function(NamedTuple):
    """A dual-feasible function of a shard's size, which is a weighted sum of its loads.

    Attributes
    ----------
    name : str
        A key of :data:`FAMILIES`.
    parameter : int
    sizes : tuple of int
        Multipliers of the loads in both sets of phases and of the use of each rank resource.
    """

    name: str
    parameter: int
    sizes: tuple[int, ...]

    def values(self, own: IntArray, full: int) -> IntArray:
        """The function of shards with these loads [entries, 2 + resources] in a bin of this size,
        int64 array [entries]."""
        return FAMILIES[self.name](own @ np.asarray(self.sizes), full, self.parameter)

    def most(self, full: int) -> int:
        """What shards of one bin add up to at most."""
        return int(FAMILIES[self.name](np.asarray(full), full, self.parameter))


def _steps(size: IntArray, full: int, steps: Any) -> IntArray:
    """Whole steps of which a bin is just too small for so many (a cut of Chvátal and Gomory)."""
    return steps * size // (full + 1)


def _threshold(size: IntArray, full: int, small: Any) -> IntArray:
    """The size without what is small; all of the bin where only small shards fit beside it."""
    return np.where(size > full - small, full, np.where(size < small, 0, size))


def _halves(size: IntArray, full: int, small: Any) -> IntArray:
    """How many shards that are not small go into the bin at most; fewer for one above half."""
    most = full // small
    return np.where(2 * size > full, most - (full - size) // small, (size >= small).astype(int))


#: By name: the function of sizes in a bin of a given size. No bin's shards add up to more than the
#: function of its size. Sources: docs/bounds.md.
FAMILIES: dict[str, Callable[[IntArray, int, Any], IntArray]] = {
    "steps": _steps, "threshold": _threshold, "halves": _halves,
}  # fmt: skip


class FunctionRow:
    """A row of dual-feasible functions in a certificate.

    Parameters
    ----------
    loads : Loads
    bins : tuple of int
        The largest heights of both sets for which the row counts.
    each : tuple of int
        Multipliers of the loads.
    times : int
        Multiplier of floors and heights.
    functions : list of (Function, int)
        With their multipliers.

    Raises
    ------
    InstanceError
        Where the numbers are too large for arrays of integers.
    """

    def __init__(
        self, loads: Loads, bins: tuple[int, int], each: tuple[int, int], times: int,
        functions: list[tuple[Function, int]],
    ) -> None:  # fmt: skip
        self._loads, self.bins, self._each, self._times = loads, bins, each, times
        self._functions = functions
        full = [*bins, *loads.capacity]
        self._full = [sum(map(mul, f.sizes, full)) for f, _ in functions]
        for (function, _), size in zip(functions, self._full, strict=True):
            if function.name == "threshold" and 2 * function.parameter > size:
                raise InstanceError("a threshold is above a half")
            most = size * function.parameter if function.name == "steps" else size
            if most >= _LARGE or max(function.sizes) >= _LARGE:
                raise InstanceError("a function of large numbers")

    @property
    def sets(self) -> tuple[Phases, Phases]:
        """Both sets of phases."""
        return self._loads.first, self._loads.second

    def fits(self) -> Mask:
        """Options of which no shard is larger than a bin, bool array [options]."""
        return self._loads.fits(self.bins)

    def prices(self, options: IntArray) -> NDArray[np.object_]:
        """What options that fit add to the left-hand side, object array of int."""
        loads = self._loads
        entries, of = loads.entries(options)
        own = loads.own[entries]
        one = sum([m * own[:, i].astype(object) for i, m in enumerate(self._each)])
        for (function, times), full in zip(self._functions, self._full, strict=True):
            one = one + times * function.values(own, full).astype(object)
        price: NDArray[np.object_] = self._times * loads.floor[options].astype(object)
        np.add.at(price, of, one * loads.number[entries])
        return price

    def most(self, keep: Mask, limit: int, first: tuple[int, int], second: tuple[int, int]
    ) -> int | float:  # fmt: skip
        """The right-hand side for the options kept and these intervals of both heights: infinite if
        they reach beyond the bins, minus infinite if no plan has such heights."""
        box = Heights.within(
            first, second if self._loads.second else (0, 0), self._loads.room(keep, limit)
        )
        if box.empty:
            return -inf
        if box.high > self.bins[0] or box.top > self.bins[1]:
            return inf
        return self._times * limit + self.right(box)

    def right(self, box: Heights) -> int:
        """The right-hand side in a box, but for the target's part."""
        sized = zip(self._functions, self._full, strict=True)
        held = sum(times * f.most(full) for (f, times), full in sized)
        ranks = self._loads.ranks
        a, b = (ranks * each - self._times for each in self._each)
        corners = [
            (box.low, box.base), (box.high, box.base), (box.low, box.top),
            (box.high, min(box.top, box.room - box.high)),
            (min(box.high, box.room - box.top), box.top),
        ]  # fmt: skip
        return ranks * held + max(a * h + b * k for h, k in corners)

    def to_dict(self) -> dict[str, Any]:
        """The row in the form of the file."""
        loads = self._loads
        named = [[loads.costs[f] for f in phases] for phases in self.sets]
        functions = [
            {"name": f.name, "parameter": f.parameter, "first": f.sizes[0], "second": f.sizes[1],
             "uses": {n: m for n, m in zip(loads.resources, f.sizes[2:], strict=True) if m},
             "times": times}
            for f, times in self._functions
        ]  # fmt: skip
        return {"row": "functions", "first": named[0], "second": named[1], "bins": [*self.bins],
                "each": [*self._each], "functions": functions, "times": self._times}  # fmt: skip


def function_row(instance: Instance, row: dict[str, Any]) -> FunctionRow:
    """A row of functions of a certificate, for the judge.

    Raises
    ------
    InstanceError
        When it names what is not there.
    """
    loads = loads_of(instance, *sets_of(instance, row))
    if not len(row["bins"]) == len(row["each"]) == 2:
        raise InstanceError("a row of functions has two bins and two multipliers of loads")
    functions = []
    for item in row["functions"]:
        if not item["uses"].keys() <= set(loads.resources):
            raise InstanceError("a function of what is not there")
        uses = (item["uses"].get(name, 0) for name in loads.resources)
        sizes = (item["first"], item["second"], *uses)
        functions.append((Function(item["name"], item["parameter"], sizes), item["times"]))
    return FunctionRow(loads, tuple(row["bins"]), tuple(row["each"]), row["times"], functions)
