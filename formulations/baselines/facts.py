"""What every option adds up to, over all its shards: the numbers heuristics sort by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Where


@dataclass(frozen=True, eq=False)
class OptionFacts:
    """Sums and largest shards of every option.

    A block on whole machines is counted with the size of its first allowed machine.

    Attributes
    ----------
    cost : int64 array [options]
        Σ of the costs of all shards, all phases.
    placed_cost : int64 array [options]
        The same without ``CLUSTER`` blocks, whose cost lies on no rank.
    depth : int64 array [options]
        Cost of the most expensive shard, all phases; 0 where every block is ``CLUSTER``.
    use : int64 array [options, resources]
        Σ over all shards.
    peak : int64 array [options, resources]
        Largest use of one shard.
    exact : bool
        Whether that size is the same for every machine such a block may take.
    """

    cost: IntArray
    placed_cost: IntArray
    depth: IntArray
    use: IntArray
    peak: IntArray
    exact: bool


def option_facts(instance: Instance) -> OptionFacts:
    """Add up every option of an instance (vectorised over all shard entries)."""
    times = _times(instance)
    cost = instance.shard_cost.sum(axis=1)
    on_rank = np.repeat(instance.block_where != Where.CLUSTER, np.diff(instance.block_shards))
    starts = instance.block_shards[:-1][instance.option_blocks[:-1]]
    return OptionFacts(
        cost=_reduce(np.add, cost * times, starts),
        placed_cost=_reduce(np.add, cost * times * on_rank, starts),
        depth=_reduce(np.maximum, np.where(on_rank, cost, 0), starts),
        use=_reduce(np.add, instance.shard_use * times[:, None], starts),
        peak=_reduce(np.maximum, instance.shard_use, starts),
        exact=len({len(m) for m in instance.machines}) == 1
        or not (instance.block_where == Where.ONE_MACHINE).any(),
    )


def _reduce(ufunc: np.ufunc, values: IntArray, starts: IntArray) -> IntArray:
    if len(starts) == 0:
        return np.empty((0, *values.shape[1:]), dtype=np.int64)
    result: IntArray = ufunc.reduceat(values, starts, axis=0)
    return result


def _times(instance: Instance) -> IntArray:
    """How many shards of the placed option each entry stands for, int64 array [entries]."""
    entries = np.diff(instance.block_shards)
    positions = _positions(instance)
    alone = np.repeat(entries == 1, entries) & (instance.shard_repeat == 1)
    whole = np.where(instance.block_where == Where.ONE_MACHINE, instance.block_count, 1)
    return np.where(alone, np.repeat(positions, entries), np.repeat(whole, entries)
                    * instance.shard_repeat)  # fmt: skip


def _positions(instance: Instance) -> IntArray:
    """Shards each block places, int64 array [blocks]."""
    where, count = instance.block_where, instance.block_count
    list_sizes = np.asarray([*map(len, instance.place_sets), 0], dtype=np.int64)
    first = np.asarray([*(s[0] for s in instance.place_sets), 0], dtype=np.int64)
    first_machine = np.where(where == Where.ONE_MACHINE, first[instance.block_places], 0)
    machine_sizes = np.asarray([len(m) for m in instance.machines], dtype=np.int64)
    return np.select(
        [where == Where.EVERY_RANK, where == Where.LIST, where == Where.ONE_MACHINE],
        [
            np.full(len(where), instance.num_ranks),
            list_sizes[instance.block_places],
            count * machine_sizes[first_machine],
        ],
        count,
    )
