"""Portions: what one rank may hold of a table, one shard of an option or several that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import per_option, shard_counts
from formulations.patterns.found import Mask

#: Up to this many portions and tables, patterns are tried. With more, many small shards fill a
#: rank, and the linear program over pooled ranks gives as good a bound.
MOST_PORTIONS, MOST_TABLES = 20_000, 300


@dataclass(frozen=True, eq=False)
class Portions:
    """Portions in the order of their tables.

    Attributes
    ----------
    instance : Instance
    table, option, entry, copies : int64 arrays [portions]
        Each portion is ``copies`` shards of an entry of an option of a table.
    load : int64 array [portions]
        Cost on the rank, summed over the phases of which nothing is hidden; no rank's sum exceeds
        the objective.
    use : int64 array [portions, rank resources]
    number : int64 array [entries]
        Shards of each entry that a plan with its option puts on ranks.
    of_table : list of int64 arrays
        Portions of each table.
    """

    instance: Instance
    table: IntArray
    option: IntArray
    entry: IntArray
    copies: IntArray
    load: IntArray
    use: IntArray
    number: IntArray
    of_table: list[IntArray]

    @cached_property
    def unit(self) -> int:
        """The greatest common divisor of the loads, at least 1."""
        return max(1, int(np.gcd.reduce(self.load)))

    @property
    def capacity(self) -> IntArray:
        """The largest capacity of each rank resource, int64 array."""
        return _capacity(self.instance)


def portions_of(instance: Instance, keep: Mask) -> Portions | None:
    """Portions of the options kept; None where patterns do not suit the instance.

    They suit objectives over ranks, and options of one block on ranks whose shards are all alike or
    on different ranks, if there are few enough. Options with a shard that fits in no rank's memory
    are left out.
    """
    keep = keep & _fits(instance)
    single = np.diff(instance.option_blocks) == 1
    suits = (
        instance.objective != Objective.TOTAL
        and bool(instance.bare_phases.any())
        and 0 < instance.num_tables <= MOST_TABLES
        and bool(single[keep].all())
        and not instance.unplaced[np.repeat(keep, np.diff(instance.option_blocks))].any()
    )
    if not suits:
        return None
    number, found = shard_counts(instance), list[tuple[int, int, int, int]]()
    for option in np.flatnonzero(keep).tolist():
        block = instance.block(int(instance.option_blocks[option]))
        entries = range(*map(int, instance.block_shards[block.index : block.index + 2]))
        once = block.distinct or block.settled
        if len(entries) > 1 and not once:
            return None  # a rank may hold several different shards of the option
        most = 1 if once else block.count
        table = int(instance.table_of[option])
        found += [
            (table, option, entry, copies)
            for entry in entries
            for copies in range(1, min(most, int(number[entry])) + 1)
        ]
        if len(found) > MOST_PORTIONS:
            return None
    table, option, entry, copies = np.asarray(found, dtype=np.int64).T
    ranked = _ranked(instance)
    return Portions(
        instance, table, option, entry, copies,
        load=(instance.shard_cost[entry] @ instance.bare_phases) * copies,
        use=instance.shard_use[entry][:, ranked] * copies[:, None],
        number=number,
        of_table=[np.flatnonzero(table == t) for t in range(instance.num_tables)],
    )  # fmt: skip


def _ranked(instance: Instance) -> list[int]:
    return [i for i, r in enumerate(instance.resources) if r.scope == Scope.RANK]


def _capacity(instance: Instance) -> IntArray:
    most = [int(instance.resources[i].capacity.max()) for i in _ranked(instance)]
    return np.asarray(most, dtype=np.int64)


def _fits(instance: Instance) -> Mask:
    """Options whose shards each fit in some rank's memory, bool array [options]."""
    within = instance.shard_use[:, _ranked(instance)] <= _capacity(instance)
    every = np.logical_and.reduce(within, axis=1)
    return np.asarray(per_option(instance, every, np.logical_and))
