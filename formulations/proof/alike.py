"""What options put into the rows of a proof where all ranks are alike: then no shard has a choice
of places that matters, and all options are summed up at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import per_option, shard_counts
from formulations.proof.rows import Layout, Measures


def possible_alike(instance: Instance) -> NDArray[np.bool_]:
    """Allowed options whose shards all have a place on like ranks, bool array [options]."""
    fits = np.ones(len(instance.shard_use), dtype=bool)
    for index, resource in enumerate(instance.resources):
        if resource.scope != Scope.CLUSTER:
            fits &= instance.shard_use[:, index] <= resource.capacity[0]
    count, sizes = instance.block_count, np.diff(instance.block_shards)
    fits |= instance.off_rank
    open_ = np.logical_and.reduceat(fits, instance.block_shards[:-1])
    room = np.where(instance.by_machine, len(instance.machines[0]), instance.num_ranks)
    room[instance.whole] = len(instance.machines)
    alike = (instance.free & (sizes == 1)) | instance.whole
    open_ &= ~(alike & instance.block_distinct & (count > room))
    placed = np.logical_and.reduceat(open_, instance.option_blocks[:-1])
    return np.asarray(instance.allowed & placed)


def own_alike(
    instance: Instance, measures: Measures, layout: Layout, fused: dict[tuple[int, int, int], int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Every option's rows and amounts one after another, and how many it has, int64 arrays."""
    columns = _columns(instance, measures, layout, fused)
    row, amount = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    there = amount != 0
    none = ~there.any(axis=1)
    row[none, 0], there[none, 0] = layout.nothing, True
    return row[there], amount[there], there.sum(axis=1)


def _columns(
    instance: Instance, measures: Measures, layout: Layout, fused: dict[tuple[int, int, int], int]
) -> list[tuple[IntArray, IntArray]]:
    """Row and amount of every option, kind of row by kind of row."""
    table = instance.table_of
    moves = np.ones(instance.num_options, dtype=np.int64)
    moves[[now.option for now in instance.current if now.option >= 0]] = 0
    moves *= np.isin(table, [now.table for now in instance.current])
    keys = zip(
        table.tolist(), instance.option_group.tolist(), instance.option_level.tolist(), strict=True
    )
    fusion = np.asarray([fused.get(key, -1) for key in keys], dtype=np.int64)

    def put(row: int | IntArray, amount: IntArray) -> tuple[IntArray, IntArray]:
        return np.broadcast_to(row, amount.shape).astype(np.int64), amount

    found = [
        put(layout.moved_tables, moves),
        put(layout.fusion + fusion, (fusion >= 0).astype(np.int64)),
    ]
    for f in range(measures.value.shape[1]):
        found.append(put(layout.cover + f, measures.floor[:, f]))
        chief = layout.chief + f * instance.num_tables + table
        found.append(put(chief, measures.excess[:, f]))
    for f in range(len(measures.costs)):
        found.append(put(layout.cost + f, _summed(instance, measures.value[:, f])))
    if instance.objective == Objective.TOTAL:
        found.append(put(layout.cost, _summed(instance, instance.shard_cost.sum(axis=1))))
    for i, first in enumerate(layout.resource):
        found.append(put(first, _summed(instance, instance.shard_use[:, i])))
    found.append(put(layout.moved_bytes, moves * _summed(instance, instance.shard_move)))
    return found


def _summed(instance: Instance, values: IntArray) -> IntArray:
    """Values of all shards of each option, from those of the entries, int64 array [options]."""
    return per_option(instance, values * shard_counts(instance))
