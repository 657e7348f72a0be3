"""What shards weigh in the rows of a proof: costs, uses, floors and peaks (docs/proof.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope, Where


@dataclass(frozen=True, eq=False)
class Measures:
    """Costs and rank resources side by side: what lies on single ranks.

    Attributes
    ----------
    costs : tuple of str
        Names of the costs; none under ``total``.
    ranked : tuple of int
        Resources of scope rank; measures are the costs, then these.
    value : int64 array [entries, measures]
        0 for shards on no rank.
    floor, excess : int64 arrays [options, measures]
        What an option puts on every rank, and what it puts on some rank beyond that.
    most : int64 array [measures]
        The largest capacity at any rank; 0 for costs, whose limit is the target's.
    """

    costs: tuple[str, ...]
    ranked: tuple[int, ...]
    value: IntArray
    floor: IntArray
    excess: IntArray
    most: IntArray


def measures(instance: Instance) -> Measures:
    """Sum up an instance; see :class:`Measures`."""
    ranked = tuple(i for i, r in enumerate(instance.resources) if r.scope == Scope.RANK)
    costs, cost = _costs(instance)
    value = np.concatenate([cost, instance.shard_use[:, list(ranked)]], axis=1)
    off = np.repeat(instance.block_where == Where.CLUSTER, np.diff(instance.block_shards))
    value[off] = 0
    most = [int(instance.resources[i].capacity.max()) for i in ranked]
    floor, excess = _floor_and_excess(instance, value)
    return Measures(
        costs, ranked, value, floor, excess,
        np.asarray([0] * len(costs) + most, dtype=np.int64),
    )  # fmt: skip


def _costs(instance: Instance) -> tuple[tuple[str, ...], IntArray]:
    if instance.objective == Objective.STEP_TIME:
        return instance.phases, instance.shard_cost
    if instance.objective == Objective.BUSIEST_RANK:
        return (Objective.BUSIEST_RANK.value,), instance.shard_cost.sum(axis=1, keepdims=True)
    return (), instance.shard_cost[:, :0]


def _floor_and_excess(instance: Instance, value: IntArray) -> tuple[IntArray, IntArray]:
    if not instance.num_options:
        return value[:0], value[:0]
    machine = (instance.block_where == Where.ONE_MACHINE) & (len(instance.machines) == 1)
    covers = (instance.block_where == Where.EVERY_RANK) | machine
    least = np.minimum.reduceat(value, instance.block_shards[:-1]) * covers[:, None]
    times = np.where(machine, instance.block_count, 1)[:, None]
    excess = np.maximum.reduceat(value, instance.block_shards[:-1]) - least
    start = instance.option_blocks[:-1]
    return np.add.reduceat(least * times, start), np.maximum.reduceat(excess, start)
