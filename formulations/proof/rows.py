"""The rows of a proof, and what every option adds to them.

An option adds fixed amounts to some rows. It may also have *slots*: shards with several possible
places, each of which adds to other rows. Ranks that are alike form a cell and share one row,
because the prover gives them equal multipliers. Slots choose independently of each other. Where the
instance restricts them jointly (distinct ranks, one machine for all), the rows are a relaxation of
those of docs/proof.md, whose prices are at least as high. Where all ranks are alike, the place of a
shard does not matter, and all options are summed up at once (:func:`own_alike`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import per_option, shard_counts
from formulations.model.partition import Partition


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of a rank's load: the costs of the objective, then the resources of scope rank.

    Attributes
    ----------
    costs : tuple of str
        Names of the costs; empty under ``total``.
    ranked : tuple of int
        Indices of the resources of scope rank.
    value : int64 array [entries, measures]
        0 for shards on no rank.
    floor, excess : int64 arrays [options, measures]
        The least that an option puts on any rank, and the most that it adds to that on some rank.
    most : int64 array [measures]
        The largest capacity of any rank; 0 for costs, which the target limits.
    """

    costs: tuple[str, ...]
    ranked: tuple[int, ...]
    value: IntArray
    floor: IntArray
    excess: IntArray
    most: IntArray


def measures(instance: Instance) -> Measures:
    """The measures of an instance; see :class:`Measures`."""
    ranked = tuple(i for i, r in enumerate(instance.resources) if r.scope == Scope.RANK)
    costs, cost = _costs(instance)
    value = np.concatenate([cost, instance.shard_use[:, list(ranked)]], axis=1)
    value[instance.off_rank] = 0
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
    machine = instance.whole & (len(instance.machines) == 1)
    covers = instance.everywhere | machine
    least = np.minimum.reduceat(value, instance.block_shards[:-1]) * covers[:, None]
    times = np.where(machine, instance.block_count, 1)[:, None]
    excess = np.maximum.reduceat(value, instance.block_shards[:-1]) - least
    start = instance.option_blocks[:-1]
    return np.add.reduceat(least * times, start), np.maximum.reduceat(excess, start)


#: What restricts a slot's machines: nothing, or its table's home.
FREE, HOME = 0, 1


@dataclass(frozen=True, eq=False)
class Layout:
    """Index of the first row of each kind; ``size`` rows in all.

    Attributes
    ----------
    cost : int
        Row of cost f at cell c: ``cost + f·cells + c``; one row for ``total``.
    resource : list of int
        First row of each resource's parts (cells, groups of machines, or the cluster).
    cover : int
        Row of measure f over set S: ``cover + S·measures + f``; set 0 is all ranks, the others
        are the machines where they are kept apart.
    chief : int
        Row of table t: ``chief + (S·measures + f)·tables + t``.
    moved_tables, moved_bytes : int
    nothing : int
        A dummy row, for choices that add nothing.
    fusion : int
        Row of the i-th table, group and level of :attr:`Rows.fused`: ``fusion + i``.
    """

    cost: int
    resource: list[int]
    cover: int
    chief: int
    moved_tables: int
    moved_bytes: int
    nothing: int
    fusion: int
    size: int


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of an instance as arrays.

    *Choices* 0 … options−1 are the fixed amounts of the options; the places of slots follow.

    Attributes
    ----------
    instance : Instance
    cells : Partition
    apart : bool
        Whether machines are distinguished, so that tables have home machines.
    measures : Measures
    layout : Layout
    start, row, amount : int64 arrays
        Choice i adds ``amount[k]`` to ``row[k]`` for k in ``start[i] … start[i+1]−1``.
    slot_option, slot_times, slot_role : int64 arrays [slots]
    slot_start : int64 array [slots + 1]
        Choices of each slot.
    machine : int64 array [choices]
        Group of machines of a slot's choice.
    possible : bool array [options]
        Allowed options whose shards all have a place.
    capacity : int64 array [rows]
        Right-hand sides of capacities, moves, and largest-shard rows of resources.
    fused : list of (table, group, level)
        The triples that occur among the options.
    """

    instance: Instance
    cells: Partition
    apart: bool
    measures: Measures
    layout: Layout
    start: IntArray
    row: IntArray
    amount: IntArray
    slot_option: IntArray
    slot_times: IntArray
    slot_role: IntArray
    slot_start: IntArray
    machine: IntArray
    possible: np.ndarray
    capacity: IntArray
    fused: list[tuple[int, int, int]]

    @property
    def sets(self) -> int:
        """Number of sets of ranks: all ranks, and every machine where machines are
        distinguished."""
        return 1 + (len(self.instance.machines) if self.apart else 0)


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
    """Row and amount of each term, option by option, and the number of terms of each option."""
    columns = _columns(instance, measures, layout, fused)
    row, amount = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    there = amount != 0
    none = ~there.any(axis=1)
    row[none, 0], there[none, 0] = layout.nothing, True
    return row[there], amount[there], there.sum(axis=1)


def _columns(
    instance: Instance, measures: Measures, layout: Layout, fused: dict[tuple[int, int, int], int]
) -> list[tuple[IntArray, IntArray]]:
    """Row and amount of every option, one pair of arrays for each kind of row."""
    table, counts = instance.table_of, shard_counts(instance)
    moves = np.ones(instance.num_options, dtype=np.int64)
    moves[[now.option for now in instance.current if now.option >= 0]] = 0
    moves *= np.isin(table, [now.table for now in instance.current])
    grouped = np.flatnonzero(instance.option_group >= 0)
    columns = table, instance.option_group, instance.option_level
    keys = zip(*(column[grouped].tolist() for column in columns), strict=True)
    fusion = np.full(instance.num_options, -1, dtype=np.int64)
    fusion[grouped] = [fused[key] for key in keys]

    def summed(values: IntArray) -> IntArray:
        """Sum over all shards of each option, from one value per shard entry."""
        return per_option(instance, values * counts)

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
        found.append(put(layout.cost + f, summed(measures.value[:, f])))
    if instance.objective == Objective.TOTAL:
        found.append(put(layout.cost, summed(instance.shard_cost.sum(axis=1))))
    for i, first in enumerate(layout.resource):
        found.append(put(first, summed(instance.shard_use[:, i])))
    found.append(put(layout.moved_bytes, moves * summed(instance.shard_move)))
    return found
