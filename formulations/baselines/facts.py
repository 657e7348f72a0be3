"""What every option adds up to, over all its shards: the numbers heuristics sort by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.bounds.own import per_option, shard_counts, total_use
from formulations.instance import Instance, IntArray, Where


@dataclass(frozen=True, eq=False)
class OptionFacts:
    """Sums and largest shards of every option.

    A block on whole machines is counted with the size of the smallest allowed machine.

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
    times = shard_counts(instance)
    cost = instance.shard_cost.sum(axis=1)
    on_rank = np.repeat(instance.block_where != Where.CLUSTER, np.diff(instance.block_shards))
    return OptionFacts(
        cost=per_option(instance, cost * times),
        placed_cost=per_option(instance, cost * times * on_rank),
        depth=per_option(instance, np.where(on_rank, cost, 0), np.maximum),
        use=total_use(instance),
        peak=per_option(instance, instance.shard_use, np.maximum),
        exact=len({len(m) for m in instance.machines}) == 1
        or not (instance.block_where == Where.ONE_MACHINE).any(),
    )
