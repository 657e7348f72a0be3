"""Symmetry breaking: interchangeable ranks are ordered by how much they hold of one table."""

from __future__ import annotations

import itertools
from collections.abc import Hashable

import numpy as np

from formulations.instance import Scope
from formulations.instance.candidates import Candidates
from formulations.instance.facts import per_option, shard_counts
from formulations.model.columns import Columns
from formulations.result.placement import Placement


def equal_ranks(candidates: Candidates) -> list[list[int]]:
    """Classes of two or more ranks of which any two may be swapped in every plan.

    They have equal capacities and equal fixed shards, every block may put as many shards on one as
    on the other, and they belong to the same machine (to any, if nothing refers to machines).
    """
    instance = candidates.instance
    marks: list[list[Hashable]] = [[] for _ in range(instance.num_ranks)]
    for resource in instance.resources:
        if resource.scope == Scope.RANK:
            for rank, room in enumerate(resource.capacity.tolist()):
                marks[rank].append(room)
    machines = any(r.scope == Scope.MACHINE for r in instance.resources)
    for rank, machine in enumerate(instance.machine_of.tolist()):
        if machines or candidates.inside or candidates.whole:
            marks[rank].append(machine)
        if any(w.entries.shape[1] > 1 for w in candidates.whole):
            marks[rank].append(instance.machines[machine].index(rank))
    _mark_fixed(candidates, marks)
    for spread in candidates.spread:
        room = np.zeros(instance.num_ranks, dtype=np.int64)
        room[spread.ranks] = spread.count.max() if spread.room is None else spread.room
        for rank, most in enumerate(room.tolist()):
            marks[rank].append(most)
    classes: dict[Hashable, list[int]] = {}
    for rank, mark in enumerate(marks):
        classes.setdefault(tuple(mark), []).append(rank)
    return [c for c in classes.values() if len(c) > 1]


def _mark_fixed(candidates: Candidates, marks: list[list[Hashable]]) -> None:
    candidate, rank, entry, times = candidates.fixed.by_rank
    what = np.stack([candidate, entry, times], axis=1)
    for place, mark in enumerate(marks):
        here = what[rank == place]
        mark.append(here[np.lexsort(here.T)].tobytes())


def anchor_table(candidates: Candidates) -> int | None:
    """The table whose shards order the ranks; None where no shard chooses its rank.

    It is the table with the most expensive such shard in its option of least total cost, because
    most plans choose that option, and shards that a plan does not have order nothing. If no such
    option has one, it is the table with the most expensive such shard in any option.
    """
    instance = candidates.instance
    cost = instance.shard_cost.sum(axis=1)
    nothing = np.iinfo(np.int64).min
    dearest = np.full(len(candidates.table), nothing)
    for group in candidates.free:
        np.maximum.at(dearest, group.candidate[group.kinds.owner], cost[group.kinds.entry])
    total = per_option(instance, cost * shard_counts(instance))[candidates.option]
    order = np.lexsort((total, candidates.table))
    cheapest = order[np.unique(candidates.table[order], return_index=True)[1]]
    for among in (cheapest, order):
        if (dearest[among] > nothing).any():
            return int(candidates.table[among[dearest[among].argmax()]])
    return None


def order_ranks(columns: Columns) -> None:
    """Within a class, no rank holds fewer shards of the anchor table than the next: ("order", …).

    The ranks of any plan can be renamed to fit. Ordering them by their total load would break more
    symmetry, but its dense rows cost CP-SAT far more than they save.
    """
    anchor = anchor_table(columns.candidates)
    if anchor is None:
        return
    assignments = columns.assignments
    mine = columns.candidates.table[assignments.candidate] == anchor
    for ranks in equal_ranks(columns.candidates):
        for left, right in itertools.pairwise(ranks):
            first, second = mine & (assignments.cell == left), mine & (assignments.cell == right)
            columns.model.row(
                ("order", left, right),
                np.concatenate([assignments.column[first], assignments.column[second]]),
                np.concatenate([assignments.each[first], -assignments.each[second]]),
                low=0,
            )


def renamed(candidates: Candidates, placement: Placement) -> Placement:
    """The same plan with interchangeable ranks permuted into the order of :func:`order_ranks`."""
    instance = candidates.instance
    anchor = anchor_table(candidates)
    if anchor is None:
        return placement
    free = _free_blocks(candidates)
    held = np.zeros(instance.num_ranks, dtype=np.int64)
    for block, ranks in zip(
        instance.blocks_of(int(placement.options[anchor])), placement.ranks[anchor], strict=True
    ):
        if free[block]:
            np.add.at(held, ranks, 1)
    name = np.arange(instance.num_ranks)
    for equal in equal_ranks(candidates):
        name[sorted(equal, key=lambda r: -int(held[r]))] = equal
    blocks = [
        [name[r] if free[b] else r for b, r in zip(instance.blocks_of(o), own, strict=True)]
        for o, own in zip(placement.options.tolist(), placement.ranks, strict=True)
    ]
    return Placement(placement.options, blocks)


def _free_blocks(candidates: Candidates) -> np.ndarray:
    """Blocks whose shards choose their rank, bool array [blocks]."""
    free = np.zeros(candidates.instance.num_blocks, dtype=bool)
    for group in candidates.free:
        free[group.block] = True
    return free
