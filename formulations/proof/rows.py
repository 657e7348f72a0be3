"""The rows of a proof, and what every option adds to them.

An option adds fixed amounts to some rows. It may also have *slots*: shards with several possible
places, each of which adds to other rows. Ranks that are alike form a cell and share one row,
because the prover gives them equal multipliers. Slots choose independently of each other. Where the
instance restricts them jointly (distinct ranks, one machine for all), the rows are a relaxation of
those of docs/proof.md, whose prices are at least as high.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from formulations.instance import Instance, IntArray, Objective, Scope
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
    hidden : int64 array [costs]
        What the largest load in each cost exceeds the cost's share of the objective by.
    value : int64 array [entries, measures]
        0 for shards on no rank.
    floor, excess : int64 arrays [options, measures]
        The least that an option puts on any rank, and the most that it adds to that on some rank.
    most : int64 array [measures]
        The largest capacity of any rank; 0 for costs, which the target limits.
    """

    costs: tuple[str, ...]
    ranked: tuple[int, ...]
    hidden: IntArray
    value: IntArray
    floor: IntArray
    excess: IntArray
    most: IntArray

    @property
    def counted(self) -> IntArray:
        """The costs of which nothing is hidden: their sum on a rank is at most the objective."""
        return np.flatnonzero(self.hidden == 0)


@lru_cache(maxsize=4)
def measures(instance: Instance) -> Measures:
    """The measures of an instance; see :class:`Measures`."""
    ranked = tuple(i for i, r in enumerate(instance.resources) if r.scope == Scope.RANK)
    costs, cost = _costs(instance)
    hidden = instance.hidden_time if instance.by_phase else np.zeros(len(costs), dtype=np.int64)
    value = np.concatenate([cost, instance.shard_use[:, list(ranked)]], axis=1)
    value[instance.off_rank] = 0
    most = [int(instance.resources[i].capacity.max()) for i in ranked]
    floor, excess = _floor_and_excess(instance, value)
    return Measures(
        costs, ranked, hidden, value, floor, excess,
        np.asarray([0] * len(costs) + most, dtype=np.int64),
    )  # fmt: skip


def _costs(instance: Instance) -> tuple[tuple[str, ...], IntArray]:
    if instance.by_phase:
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
        Right-hand sides of capacities, moves, and largest-shard rows of resources; what is hidden
        in rows of costs.
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
