"""The rows of a proof, and what every option puts into them wherever its shards go.

An option is what it puts into rows anyway, and *slots*: shards with several places to choose from,
each place with what it then puts into rows. Rows are kept once a cell of like ranks, as multipliers
of a proof found here are equal within a cell. Slots choose independently: where the instance says
more (shards that must part, one machine for all), this is a relaxation of docs/proof.md, whose
prices are no smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.model.partition import Partition


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
    """Where the rows of each kind begin; ``size`` rows in all.

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
        A row without meaning.
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
    """All of it as arrays; *choices* 0 … options−1 are what the options put into rows anyway.

    Attributes
    ----------
    instance : Instance
    cells : Partition
    apart : bool
        Whether machines are told apart, so that tables have homes.
    measures : Measures
    layout : Layout
    start, row, amount : int64 arrays
        Choice i puts ``amount[k]`` into ``row[k]`` for k in ``start[i] … start[i+1]−1``.
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
        That some option has.
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
        """All ranks, and every machine where they are kept apart."""
        return 1 + (len(self.instance.machines) if self.apart else 0)
