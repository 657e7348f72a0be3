"""Sums over the shards of a single option, whatever the other tables choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective


def shard_counts(instance: Instance) -> IntArray:
    """Number of shards that each shard entry represents, int64 array [entries].

    A shared entry of a ``ONE_MACHINE`` block is counted for the smallest machine it may take.
    """
    sizes = np.asarray([len(m) for m in instance.machines], dtype=np.int64)
    per_block = np.maximum(instance.block_count, 1).astype(np.int64)
    per_block[instance.everywhere] = instance.num_ranks
    for block in np.flatnonzero(instance.listed).tolist():
        per_block[block] = len(instance.places(block))
    for block in np.flatnonzero(instance.whole).tolist():
        per_block[block] = instance.block_count[block] * int(sizes[instance.places(block)].min())
    runs = np.diff(instance.block_shards)
    shared = np.repeat(runs == 1, runs)
    times = np.where(instance.whole, instance.block_count, 1)
    uneven = instance.shard_repeat * np.repeat(times, runs)
    return np.where(shared, np.repeat(per_block, runs), uneven)


def members(offsets: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Members of some rows of a CSR array, and the rows' offsets in the result."""
    length = offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([[0], np.cumsum(length)])
    return np.repeat(offsets[rows] - ends[:-1], length) + np.arange(ends[-1]), ends


def per_option(instance: Instance, values: NDArray[Any], how: np.ufunc = np.add) -> NDArray[Any]:
    """Sum (or combine by ``how``) values of entries over each option, array [options, …]."""
    if not instance.num_options:
        return values[:0]
    first = instance.block_shards[:-1][instance.option_blocks[:-1]]
    result: NDArray[Any] = how.reduceat(values, first, axis=0)
    return result


def bytes_to_move(instance: Instance) -> IntArray:
    """Bytes that move if a table takes an option anywhere else, int64 array [options]."""
    return per_option(instance, instance.shard_move * shard_counts(instance))


def total_cost(instance: Instance) -> IntArray:
    """Cost of all shards of an option in each phase, int64 array [options, phases]."""
    return per_option(instance, instance.shard_cost * shard_counts(instance)[:, None])


def shown_cost(instance: Instance) -> IntArray:
    """The same in all phases of which nothing is hidden, int64 array [options]."""
    return total_cost(instance) @ instance.bare_phases


def total_use(instance: Instance) -> IntArray:
    """Use of each resource by all shards of an option, int64 array [options, resources]."""
    return per_option(instance, instance.shard_use * shard_counts(instance)[:, None])


def own_cost(instance: Instance) -> IntArray:
    """Lower bound on the cost of any plan that uses the option, from its own shards, [options].

    Some rank carries the option's most expensive shard: its cost for ``busiest_rank``; for
    ``step_time`` and ``pipelined_step``, Σ over phases of the largest cost of a shard in the phase,
    beyond what is hidden. Under ``total`` costs may be negative, so it is the smallest int64.
    """
    if instance.objective == Objective.TOTAL:
        return np.full(instance.num_options, np.iinfo(np.int64).min)
    cost = instance.shard_cost.copy()
    cost[instance.off_rank] = 0
    if instance.objective == Objective.BUSIEST_RANK:
        cost = cost.sum(axis=1, keepdims=True)
        return per_option(instance, cost, np.maximum)[:, 0]
    largest = per_option(instance, cost, np.maximum) - instance.hidden_time
    own: IntArray = np.maximum(largest, 0).sum(axis=1)
    return own


@dataclass(frozen=True, eq=False)
class OptionFacts:
    """Sums and largest shards of every option.

    A block on whole machines is counted with the size of the smallest allowed machine.

    Attributes
    ----------
    cost : int64 array [options]
        Σ of the costs of all shards, all phases.
    placed_cost : int64 array [options]
        The same without ``CLUSTER`` blocks, whose cost is on no rank, and without phases of which
        something is hidden.
    depth : int64 array [options]
        Cost of the most expensive shard, in those phases; 0 where every block is ``CLUSTER``.
    use : int64 array [options, resources]
        Σ over all shards.
    peak : int64 array [options, resources]
        Largest use of one shard.
    exact : bool
        Whether all machines that such a block may take have this size.
    """

    cost: IntArray
    placed_cost: IntArray
    depth: IntArray
    use: IntArray
    peak: IntArray
    exact: bool


def option_facts(instance: Instance) -> OptionFacts:
    """Add up every option of an instance (vectorised over all shard entries)."""
    times = shard_counts(instance)
    shows = instance.shard_cost @ instance.bare_phases
    on_rank = ~instance.off_rank
    return OptionFacts(
        cost=total_cost(instance).sum(axis=1),
        placed_cost=per_option(instance, shows * times * on_rank),
        depth=per_option(instance, np.where(on_rank, shows, 0), np.maximum),
        use=total_use(instance),
        peak=per_option(instance, instance.shard_use, np.maximum),
        exact=len({len(m) for m in instance.machines}) == 1 or not instance.whole.any(),
    )
