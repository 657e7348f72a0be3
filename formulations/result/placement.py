"""A Placement: the option chosen for every table and the ranks of every block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.instance.assigning import assigned


@dataclass(frozen=True, eq=False)
class Placement:
    """An option and its ranks for every table.

    Attributes
    ----------
    options : int64 array [tables]
        Global option index per table.
    ranks : list [tables] of list [blocks] of int64 array [positions]
        Rank of every shard in position order: all ranks for ``EVERY_RANK``, the list for
        ``LIST``, machine after machine for ``ONE_MACHINE``, empty for ``CLUSTER``.
    """

    options: IntArray
    ranks: list[list[IntArray]]

    def to_lists(self, table: int) -> list[list[int]]:
        """Ranks of a table's blocks as plain lists (for JSON)."""
        return [block.tolist() for block in self.ranks[table]]


def machine_ranks(instance: Instance, machines: Sequence[int]) -> IntArray:
    """Ranks of the given machines one after another (a ``ONE_MACHINE`` block's positions)."""
    parts = [np.asarray(instance.machines[m], dtype=np.int64) for m in machines]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def same_ranks(a: Sequence[Sequence[int]], b: Sequence[Sequence[int]]) -> bool:
    """Whether two lists of blocks use the same ranks, each block as a multiset."""
    return len(a) == len(b) and all(
        sorted(map(int, x)) == sorted(map(int, y)) for x, y in zip(a, b, strict=True)
    )


def current_plan(instance: Instance) -> Placement | None:
    """The plan in production, if it covers every table and all its options still exist."""
    if len(instance.current) != instance.num_tables or not instance.num_tables:
        return None
    now = sorted(instance.current, key=lambda c: c.table)
    ranks = [assigned(instance, c.option, c.ranks) for c in now]
    if any(r is None for r in ranks):
        return None
    return Placement(
        np.asarray([c.option for c in now], dtype=np.int64),
        [[np.asarray(r, dtype=np.int64) for r in own or ()] for own in ranks],
    )
