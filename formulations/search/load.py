"""A placement in the making, with the load it puts on every rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope, Where
from formulations.result.check import position_entries
from formulations.result.placement import Placement


@dataclass(frozen=True, eq=False)
class Load:
    """Cost and use per rank, and off ranks.

    Attributes
    ----------
    cost : int64 array [ranks, peaks]
        Sum over phases (``busiest_rank``, ``total``) or per phase (``step_time``).
    use : int64 array [ranks, resources]
    off_cost : int
        Cost of cluster blocks.
    off_use : int64 array [resources]
    """

    cost: IntArray
    use: IntArray
    off_cost: int
    off_use: IntArray


def peak_costs(instance: Instance) -> IntArray:
    """Cost of every entry as the objective counts it, int64 array [entries, peaks]."""
    if instance.objective == Objective.STEP_TIME:
        return instance.shard_cost
    return instance.shard_cost.sum(axis=1, keepdims=True)


def load_of(
    instance: Instance, costs: IntArray, placement: Placement, tables: Iterable[int]
) -> Load:
    """Load that some tables put on the cluster.

    Parameters
    ----------
    costs : int64 array [entries, peaks]
        From :func:`peak_costs`.
    """
    ranks_of, entries_of = [], []
    base_cost = np.zeros(costs.shape[1], dtype=np.int64)
    base_use = np.zeros(instance.shard_use.shape[1], dtype=np.int64)
    off_cost, off_use = 0, np.zeros_like(base_use)
    for table in tables:
        for index, block in enumerate(instance.blocks_of(int(placement.options[table]))):
            view = instance.block(block)
            if view.where == Where.EVERY_RANK and view.shared:
                base_cost += costs[view.entries[0]]
                base_use += instance.shard_use[view.entries[0]]
            elif view.where == Where.CLUSTER:
                entries = position_entries(instance, view, np.zeros(view.count, dtype=np.int64))
                off_cost += int(costs[entries].sum())
                off_use += instance.shard_use[entries].sum(axis=0)
            else:
                ranks = placement.ranks[table][index]
                ranks_of.append(ranks)
                entries_of.append(position_entries(instance, view, ranks))
    cost = np.tile(base_cost, (instance.num_ranks, 1))
    use = np.tile(base_use, (instance.num_ranks, 1))
    if ranks_of:
        ranks, entries = np.concatenate(ranks_of), np.concatenate(entries_of)
        np.add.at(cost, ranks, costs[entries])
        np.add.at(use, ranks, instance.shard_use[entries])
    return Load(cost, use, off_cost, off_use)


def objective_of(instance: Instance, load: Load) -> int:
    """The instance's objective at a load."""
    if instance.objective == Objective.TOTAL:
        return int(load.cost.sum()) + load.off_cost
    return int(load.cost.max(axis=0).sum())


def overflow(instance: Instance, load: Load) -> float:
    """How far capacities are exceeded, in shares of a place's capacity, summed over places."""
    total = 0.0
    for index, resource in enumerate(instance.resources):
        use = place_use(instance, load, index)
        room = np.maximum(resource.capacity, 1)
        total += float((np.maximum(use - resource.capacity, 0) / room).sum())
    return total


def place_use(instance: Instance, load: Load, index: int) -> IntArray:
    """Use of one resource at each of its places."""
    resource = instance.resources[index]
    if resource.scope == Scope.RANK:
        return load.use[:, index]
    if resource.scope == Scope.CLUSTER:
        return np.asarray([load.use[:, index].sum() + load.off_use[index]])
    total = np.zeros(len(instance.machines), dtype=np.int64)
    np.add.at(total, instance.machine_of, load.use[:, index])
    return total
