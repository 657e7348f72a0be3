"""Ranks that no constraint tells apart are put in order of what they hold of one table."""

from __future__ import annotations

import itertools
from collections.abc import Hashable

import numpy as np

from formulations.cpsat_model.variables import Variables
from formulations.instance import Instance, Scope, Where

#: Kinds of block whose shards choose their rank.
FREE = (Where.ANY_RANK, Where.ANY_RANK_OF_ONE_MACHINE)


def equal_ranks(instance: Instance) -> list[list[int]]:
    """Classes of ranks of which any two may be swapped in every plan.

    Two ranks are equal when they have the same capacities, the same shard in every uneven block
    that is tied to ranks, belong to the same lists, pins and current places, and sit on the same
    machine (on any, when nothing in the instance speaks of machines).

    Returns
    -------
    list of lists of two or more ranks
    """
    colours = _colours(instance)
    machines = _speaks_of_machines(instance)
    classes: dict[Hashable, list[int]] = {}
    for rank in range(instance.num_ranks):
        where = int(instance.machine_of[rank]) if machines else -1
        classes.setdefault((where, colours[rank]), []).append(rank)
    return [c for c in classes.values() if len(c) > 1]


def order_ranks(variables: Variables) -> None:
    """Within a class, no rank holds fewer shards of the anchor table than the next.

    Any plan can be renamed so, one table at a time. Ordering by what ranks carry in all would
    break more symmetry, but its dense rows cost CP-SAT far more than they save (20 tables on 8
    ranks of TorchRec's instances: no proof in 20 s instead of 8 s).
    """
    anchor = anchor_table(variables.instance)
    if anchor is None:
        return
    for ranks in equal_ranks(variables.instance):
        held = [_held(variables, anchor, r) for r in ranks]
        for left, right in itertools.pairwise(held):
            variables.cp.add(variables.sum(left) >= variables.sum(right))


def anchor_table(instance: Instance) -> int | None:
    """The table with the dearest shard among those freely placed; None where there is none."""
    free = np.isin(instance.block_where, FREE) & instance.allowed[instance.option_of]
    if not free.any():
        return None
    entry = np.repeat(free, np.diff(instance.block_shards))
    weight = np.where(entry, instance.shard_cost.sum(axis=1) + 1, np.iinfo(np.int64).min)
    block = int(np.searchsorted(instance.block_shards, int(weight.argmax()), side="right")) - 1
    return int(instance.table_of[instance.option_of[block]])


def _held(variables: Variables, table: int, rank: int) -> list[int]:
    """Variables that put freely placed shards of a table on a rank."""
    instance = variables.instance
    return [
        share
        for option in instance.options_of(table)
        for block in instance.blocks_of(option)
        if block in variables.kinds
        for share in variables.shares_on(block, rank)
    ]


def _speaks_of_machines(instance: Instance) -> bool:
    kinds = (Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE)
    return bool(np.isin(instance.block_where, kinds).any()) or any(
        r.scope == Scope.MACHINE for r in instance.resources
    )


def _colours(instance: Instance) -> list[Hashable]:
    """What tells ranks apart, besides their machine."""
    marks: list[list[Hashable]] = [[] for _ in range(instance.num_ranks)]
    for resource in instance.resources:
        if resource.scope == Scope.RANK:
            for rank, room in enumerate(resource.capacity.tolist()):
                marks[rank].append(room)
    for rank, machine in enumerate(instance.machine_of.tolist()):
        if _uneven(instance, Where.ONE_MACHINE):
            marks[rank].append(instance.machines[machine].index(rank))
    for index in _uneven(instance, Where.EVERY_RANK):
        for rank, entry in enumerate(instance.block(index).entries.tolist()):
            marks[rank].append(_content(instance, entry))
    _mark_lists(instance, marks)
    _mark_named(instance, marks)
    return [tuple(m) for m in marks]


def _uneven(instance: Instance, where: Where) -> list[int]:
    uneven = np.diff(instance.block_shards) > 1
    return np.flatnonzero(uneven & (instance.block_where == where)).tolist()


def _content(instance: Instance, entry: int) -> bytes:
    return instance.shard_use[entry].tobytes() + instance.shard_cost[entry].tobytes()


def _mark_lists(instance: Instance, marks: list[list[Hashable]]) -> None:
    """Membership in every list of ranks; places in a list with unequal shards are told apart."""
    lists = {int(p) for p in instance.block_places[instance.block_where == Where.LIST]}
    among = {int(p) for p in instance.block_places[instance.block_where == Where.ANY_RANK]}
    for places in sorted((lists | among) - {-1}):
        ranks = instance.place_sets[places]
        for rank in range(instance.num_ranks):
            at = ranks.index(rank) if rank in ranks else -1
            marks[rank].append(at if places in lists else at >= 0)


def _mark_named(instance: Instance, marks: list[list[Hashable]]) -> None:
    """How often pins and the current plan name a rank, block by block."""
    limited = instance.max_moved_tables is not None or instance.max_moved_bytes is not None
    named = [p.ranks for p in instance.pins if p.ranks is not None]
    named += [c.ranks for c in instance.current if limited]
    for blocks in named:
        for ranks in blocks:
            for rank in range(instance.num_ranks):
                marks[rank].append(tuple(ranks).count(rank))
