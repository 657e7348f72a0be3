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
    part = current_part(instance)
    return None if part is None or (part.options < 0).any() else part


def current_part(instance: Instance) -> Placement | None:
    """The plan in production, with option −1 and no ranks for tables that it lacks.

    None if there is none, or if some of its options or ranks no longer exist.
    """
    ranks = {now.table: assigned(instance, now.option, now.ranks) for now in instance.current}
    if not ranks or None in ranks.values():
        return None
    options = np.full(instance.num_tables, -1, dtype=np.int64)
    for now in instance.current:
        options[now.table] = now.option
    places = (ranks.get(table) or () for table in range(instance.num_tables))
    return Placement(options, [[np.asarray(r, dtype=np.int64) for r in own] for own in places])
