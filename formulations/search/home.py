"""Bring a plan closer to the one in production at no higher cost: rename ranks, return tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

from formulations.instance import Instance, IntArray
from formulations.instance.facts import bytes_to_move
from formulations.instance.instance import MAX_VALUE
from formulations.result.check import (
    check,
    compute_loads,
    exposed,
    moved_bytes,
    moved_tables,
)
from formulations.result.placement import Placement
from formulations.search.anneal import Sampler, Within


def closer(instance: Instance, plan: Placement, most: int, seed: int = 0) -> Placement:
    """A plan that moves fewer bytes from ``current``, at a cost of at most ``most``.

    Ranks and machines that may be exchanged are renamed first, then every table returns to its old
    place that can, one after the other. The plan itself if neither helps. The compiled loops must
    be loaded.
    """
    best = plan
    for way in (renamed, lambda i, p: returned(i, p, most, seed)):
        found = way(instance, best)
        if _cost(instance, found) is not None and _bytes(instance, found) < _bytes(instance, best):
            best = found
    return best


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
    found = _with_names(instance, plan, names)
    return found if _cost(instance, found) == _cost(instance, plan) else plan


def returned(instance: Instance, plan: Placement, most: int, seed: int = 0) -> Placement:
    """The plan after returning every table to its old place that can, as long as the plan costs no
    more than ``most``."""
    free = replace(instance, max_moved_tables=MAX_VALUE, max_moved_bytes=MAX_VALUE)
    sampler = Sampler(free, seed)
    tops = exposed(instance, compute_loads(instance, plan)).tolist()
    within = [max(1, top) for top in tops] if instance.by_phase else [most]
    sampler.begin(plan, Within(within))
    sampler.tidy(preferences(instance), most)
    found = sampler.placement()
    cost = _cost(instance, found)
    return found if cost is not None and cost <= most else plan


def preferences(instance: Instance) -> IntArray:
    """Bytes that move if a table takes an option anywhere, then if it keeps its option and ranks
    (none); int64 array [2 × options]."""
    size = bytes_to_move(instance)
    known = np.isin(instance.table_of, [now.table for now in instance.current])
    return np.concatenate([(size + 1) * known, np.zeros_like(size)]).astype(np.int64)


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


def _with_names(instance: Instance, plan: Placement, names: IntArray) -> Placement:
    """The plan with other names for its ranks; shards that lie on every rank stay in order."""
    ranks = []
    for option, own in zip(plan.options, plan.ranks, strict=True):
        blocks = instance.blocks_of(int(option))
        ranks.append(
            [
                here if instance.everywhere[block] else names[here]
                for block, here in zip(blocks, own, strict=True)
            ]
        )
    return Placement(plan.options, ranks)


def _cost(instance: Instance, plan: Placement) -> int | None:
    """The objective; None for what is no plan."""
    free = replace(instance, max_moved_tables=None, max_moved_bytes=None)
    verdict = check(free, plan)
    return verdict.objectives[instance.objective.value] if verdict.feasible else None


def _bytes(instance: Instance, plan: Placement) -> int:
    return moved_bytes(instance, plan, moved_tables(instance, plan))
