"""Bring a plan closer to the one in production at the same cost, by other names of its ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

from formulations.instance import Instance, IntArray
from formulations.instance.facts import bytes_to_move
from formulations.result.check import value_of
from formulations.result.placement import Placement


def renamed(instance: Instance, plan: Placement) -> Placement:
    """The plan with ranks exchanged within machines, and whole machines, such that most bytes lie
    where they lay.

    Two assignment problems, one inside the other. If the exchange breaks a constraint or changes
    the cost, as where ranks differ, the plan is returned as it is.
    """
    weights = _kept(instance, plan)
    machines = instance.machines
    inner: dict[tuple[int, int], tuple[int, list[int]]] = {}
    outer = np.zeros((len(machines), len(machines)), dtype=np.int64)
    for new, there in enumerate(machines):
        for old, here in enumerate(machines):
            if len(there) != len(here):
                outer[new, old] = -1  # no exchange of machines of two sizes
                continue
            inner[new, old] = _assigned(weights[np.ix_(there, here)])
            outer[new, old] = inner[new, old][0]
    names = np.arange(instance.num_ranks)
    for new, old in enumerate(_assigned(outer)[1]):
        if (new, old) in inner:
            for position, other in enumerate(inner[new, old][1]):
                names[machines[new][position]] = machines[old][other]
    ranks = [  # shards that lie on every rank stay in order
        [
            here if instance.everywhere[block] else names[here]
            for block, here in zip(instance.blocks_of(option), own, strict=True)
        ]
        for option, own in zip(plan.options.tolist(), plan.ranks, strict=True)
    ]
    found = Placement(plan.options, ranks)
    free = replace(instance, max_moved_tables=None, max_moved_bytes=None)
    return found if value_of(free, found) == value_of(free, plan) else plan


def _kept(instance: Instance, plan: Placement) -> IntArray:
    """Bytes on each rank of the plan that lay on each rank in production.

    Int64 array [ranks, ranks], in units of 2⁻²⁰ of the largest table, so that sums stay small.
    """
    found = np.zeros((instance.num_ranks, instance.num_ranks))
    size = bytes_to_move(instance)
    for now in instance.current:
        if now.option != int(plan.options[now.table]):
            continue
        blocks = instance.blocks_of(now.option)
        for block, before, after in zip(blocks, now.ranks, plan.ranks[now.table], strict=True):
            if instance.settled[block] or not len(after):
                continue
            share = size[now.option] / len(after)
            for rank in after:
                found[int(rank), list(before)] += share / len(before)
    largest = max(1.0, float(size.max(initial=1)))
    return np.asarray(np.rint(found / largest * 2**20), dtype=np.int64)


def _assigned(weights: IntArray) -> tuple[int, list[int]]:
    """The most valuable assignment of rows to columns: its value, and the column of each row."""
    rows, columns = np.indices(weights.shape)
    solver = SimpleLinearSumAssignment()
    solver.add_arcs_with_cost(
        rows.ravel().astype(np.int32), columns.ravel().astype(np.int32), -weights.ravel()
    )
    solver.solve()
    return -solver.optimal_cost(), [solver.right_mate(row) for row in range(len(weights))]
