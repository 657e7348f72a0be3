"""All ways to place a table, in a few normal forms, which `lowering` derives from the Instance.

A *candidate* is an option, or the current option staying on its current ranks. Its shards lie

* ``even``: a shard like the entry on every rank;
* ``fixed``: on given ranks (``times`` −1 removes one where a rank differs from ``even``);
* ``off``: on no rank;
* ``spread``: freely among some ranks, at most ``room`` on each;
* ``inside``: freely among the ranks of one machine, which is to be chosen;
* ``whole``: one on each rank of ``count`` machines, which are to be chosen.

These forms also express ``among``, ``distinct``, pins (multisets of ranks) and the current
placement. Shards of equal use, cost and moving bytes are of one kind and only counted.
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
        ``count`` is the number of shards.
    ranks : int64 array
    room : int64 array [ranks] or None
        Most shards of one block on each of these ranks; None: no limit.
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
    """Blocks whose shards lie freely inside one of the same machines, on distinct ranks or not."""

    candidate: IntArray
    block: IntArray
    count: IntArray
    machines: IntArray
    distinct: bool
    kinds: ShardKinds


@dataclass(frozen=True, eq=False)
class Whole:
    """Blocks that take ``count`` of the same machines, distinct ones or not.

    ``entries`` [blocks, positions] are the shards of a machine's ranks in order, or a single column
    if all are equal.
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
        Option of each candidate, sorted, then those that stay. Options that cannot be placed have
        no candidate.
    stays : bool array [candidates]
        Whether it is the table's current placement, so that nothing moves.
    moves : bool array [candidates]
        Whether choosing it counts as moving the table.
    even_candidate, even_entry : int64 arrays
    fixed : Fixed
    off_candidate, off_entry, off_times : int64 arrays
    spread, inside, whole : lists
    canonical : int64 array [entries]
        The entry that represents a shard's kind.
    held : dict of candidate to ranks
        Ranks of the candidates whose ranks are given, by block, in position order.
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
