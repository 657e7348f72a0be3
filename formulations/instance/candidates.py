"""Every way a table may be placed, in a few normal forms; `lowering` makes them.

A *candidate* is an option, or an option that stays on the ranks it has now. Its shards lie

* ``even``: one like the entry on every rank;
* ``fixed``: on given ranks (``times`` −1 takes one away where a rank differs from ``even``);
* ``off``: on no rank;
* ``spread``: freely among some ranks, at most ``room`` of them on each;
* ``inside``: freely among the ranks of one of some machines;
* ``whole``: one on each rank of every machine taken, ``count`` machines of some.

``among``, ``distinct``, pins (the ranks of a block as a multiset) and the current placement are
all said by these. Shards of equal use, cost and moving bytes are one kind and are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulations.instance.assigning import Ranks
from formulations.instance.instance import Instance, IntArray


@dataclass(frozen=True, eq=False)
class Fixed:
    """``times`` shards like ``entry`` on each of ``length`` ranks from ``rank`` on; all [runs]."""

    candidate: IntArray
    entry: IntArray
    rank: IntArray
    length: IntArray
    times: IntArray

    @cached_property
    def by_rank(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Candidate, rank, entry and times, rank by rank."""
        run = np.repeat(np.arange(len(self.rank)), self.length)
        first = np.cumsum(self.length) - self.length
        rank = self.rank[run] + np.arange(len(run)) - first[run]
        return self.candidate[run], rank, self.entry[run], self.times[run]


@dataclass(frozen=True, eq=False)
class ShardKinds:
    """``count`` equal shards like ``entry`` of the block at index ``owner``; all [kinds]."""

    owner: IntArray
    entry: IntArray
    count: IntArray


@dataclass(frozen=True, eq=False)
class Spread:
    """Blocks whose shards lie freely among the same ranks.

    Attributes
    ----------
    candidate, block, count : int64 arrays [blocks]
        ``count`` shards in all.
    ranks : int64 array
    room : int64 array [ranks] or None
        Most shards of one block on each of them; None: no limit.
    kinds : ShardKinds
    """

    candidate: IntArray
    block: IntArray
    count: IntArray
    ranks: IntArray
    room: IntArray | None
    kinds: ShardKinds


@dataclass(frozen=True, eq=False)
class Inside:
    """Blocks whose shards lie freely on one of the same machines, on different ranks or not."""

    candidate: IntArray
    block: IntArray
    count: IntArray
    machines: IntArray
    distinct: bool
    kinds: ShardKinds


@dataclass(frozen=True, eq=False)
class Whole:
    """Blocks that take ``count`` of the same machines, different ones or not.

    ``entries`` [blocks, positions] are the shards of a machine's ranks in order; one column: all
    alike.
    """

    candidate: IntArray
    block: IntArray
    count: IntArray
    machines: IntArray
    distinct: bool
    entries: IntArray


@dataclass(frozen=True, eq=False)
class Candidates:
    """All candidates of some options.

    Attributes
    ----------
    option : int64 array [candidates]
        By option; those that stay come last. Options that cannot be placed have none.
    stays : bool array [candidates]
        Whether it is the table's current placement, so that nothing moves.
    moves : bool array [candidates]
        Whether choosing it counts as moving the table.
    even_candidate, even_entry : int64 arrays
    fixed : Fixed
    off_candidate, off_entry, off_times : int64 arrays
    spread, inside, whole : lists
    canonical : int64 array [entries]
        The entry that stands for a shard's kind.
    held : dict of candidate to ranks
        Of those whose ranks are given: by block, in position order.
    """

    instance: Instance
    option: IntArray
    stays: NDArray[np.bool_]
    moves: NDArray[np.bool_]
    even_candidate: IntArray
    even_entry: IntArray
    fixed: Fixed
    off_candidate: IntArray
    off_entry: IntArray
    off_times: IntArray
    spread: list[Spread]
    inside: list[Inside]
    whole: list[Whole]
    canonical: IntArray
    held: dict[int, Ranks]

    @property
    def free(self) -> list[Spread | Inside]:
        """Blocks whose shards choose their rank."""
        return [*self.spread, *self.inside]

    @property
    def count(self) -> int:
        """Number of candidates."""
        return len(self.option)

    @property
    def table(self) -> IntArray:
        """Table of each candidate, int64 array."""
        return self.instance.table_of[self.option]
