"""What an option needs and costs all by itself, before any other table is placed."""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope, Where
from formulations.instance.seating import pinned_ranks


def shard_counts(instance: Instance) -> IntArray:
    """How many shards each shard entry stands for, int64 array [entries].

    For a shared entry of a ``ONE_MACHINE`` block with machines of unequal size: the fewest.
    """
    sizes = np.asarray([len(m) for m in instance.machines], dtype=np.int64)
    per_block = np.maximum(instance.block_count, 1).astype(np.int64)
    per_block[instance.block_where == Where.EVERY_RANK] = instance.num_ranks
    for block in np.flatnonzero(instance.block_where == Where.LIST):
        per_block[block] = len(instance.place_sets[int(instance.block_places[block])])
    machine_wide = np.flatnonzero(instance.block_where == Where.ONE_MACHINE)
    least = int(sizes.min())
    for block in machine_wide:
        places = int(instance.block_places[block])
        few = least if places < 0 else int(sizes[list(instance.place_sets[places])].min())
        per_block[block] = instance.block_count[block] * few
    runs = np.diff(instance.block_shards)
    shared = np.repeat(runs == 1, runs)
    times = np.where(instance.block_where == Where.ONE_MACHINE, instance.block_count, 1)
    uneven = instance.shard_repeat * np.repeat(times, runs)
    return np.where(shared, np.repeat(per_block, runs), uneven)


def per_option(instance: Instance, values: IntArray, how: np.ufunc = np.add) -> IntArray:
    """Sum (or join otherwise) values of entries over each option, array [options, …]."""
    if not instance.num_options:
        return values[:0]
    first = instance.block_shards[:-1][instance.option_blocks[:-1]]
    result: IntArray = how.reduceat(values, first, axis=0)
    return result


def total_use(instance: Instance) -> IntArray:
    """Use of each resource by all shards of an option, int64 array [options, resources]."""
    return per_option(instance, instance.shard_use * shard_counts(instance)[:, None])


def own_cost(instance: Instance) -> IntArray:
    """Least a plan can cost that uses the option, from its own shards alone, [options].

    Some rank carries the option's largest shard: its cost for ``busiest_rank``; Σ over phases of
    the largest cost for ``step_time``. Under ``total`` costs may be negative, so nothing is
    claimed: int64 minimum.
    """
    if instance.objective == Objective.TOTAL:
        return np.full(instance.num_options, np.iinfo(np.int64).min)
    cost = instance.shard_cost.copy()
    off = np.repeat(instance.block_where == Where.CLUSTER, np.diff(instance.block_shards))
    cost[off] = 0
    if instance.objective == Objective.BUSIEST_RANK:
        cost = cost.sum(axis=1, keepdims=True)
    return per_option(instance, cost, np.maximum).sum(axis=1)


def usable(instance: Instance) -> np.ndarray:
    """Options allowed by pins and ``forbidden`` that may fit an empty cluster, bool [options].

    Necessary conditions only: no shard above the largest place; a shard on every rank not above
    the smallest; all shards together not above all capacity; enough ranks (or machines) for
    shards that must part; a pin's ranks are some it may take.
    """
    if not instance.num_options:
        return np.zeros(0, dtype=bool)
    mask = instance.allowed.copy()
    entry_ok = np.ones(len(instance.shard_use), dtype=bool)
    runs = np.diff(instance.block_shards)
    shared = np.repeat((instance.block_where == Where.EVERY_RANK) & (runs == 1), runs)
    for index, resource in enumerate(instance.resources):
        use = instance.shard_use[:, index]
        entry_ok &= use <= resource.capacity.max()
        if resource.scope == Scope.RANK:
            entry_ok &= ~shared | (use <= resource.capacity.min())
    bad = np.bitwise_or.reduceat(~entry_ok, instance.block_shards[:-1])
    mask &= ~np.bitwise_or.reduceat(bad, instance.option_blocks[:-1])
    total = total_use(instance)
    for index, resource in enumerate(instance.resources):
        mask &= total[:, index] <= int(resource.capacity.sum())
    for option, ranks in pinned_ranks(instance).items():
        mask[option] &= ranks is not None
    for block in np.flatnonzero(instance.block_distinct & (instance.block_count > 1)):
        if instance.block_count[block] > _different_places(instance, int(block)):
            mask[instance.option_of[block]] = False
    return mask


def _different_places(instance: Instance, block: int) -> int:
    """How many different ranks (or machines) the shards of a block can take at most."""
    where, places = int(instance.block_where[block]), int(instance.block_places[block])
    allowed = None if places < 0 else instance.place_sets[places]
    if where == Where.ANY_RANK:
        return instance.num_ranks if allowed is None else len(allowed)
    machines = range(len(instance.machines)) if allowed is None else allowed
    if where == Where.ONE_MACHINE:
        return len(machines)
    if where == Where.ANY_RANK_OF_ONE_MACHINE:
        return max(len(instance.machines[m]) for m in machines)
    return int(instance.block_count[block])
