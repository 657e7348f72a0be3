"""Bring a plan closer to the one in production within a cost: rename ranks, return tables, anneal
under a limit on moved bytes that falls."""

from __future__ import annotations

from collections.abc import Callable
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
from formulations.search.numbers import (
    PULLED_HEATS,
    PULLED_LESS,
    PULLED_MOVES,
    PULLED_PASSES,
    PULLED_PATIENCE,
    PULLED_STEP,
)


def closer(instance: Instance, plan: Placement, most: int, seed: int = 0) -> Placement:
    """A plan that moves fewer bytes from ``current``, at a cost of at most ``most``.

    Ranks and machines that may be exchanged are renamed first, then every table returns to its old
    place that can, one after the other. The plan itself if neither helps. The compiled loops must
    be loaded.
    """
    best = plan
    for way in (renamed, lambda i, p: returned(i, p, most, seed)):
        found = way(instance, best)
        if _cost(instance, found) is not None and bytes_away(instance, found) < bytes_away(
            instance, best
        ):
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
    sampler.begin(plan, Within(_aims(instance, plan, most)))
    sampler.tidy(preferences(instance), most)
    found = sampler.placement()
    cost = _cost(instance, found)
    return found if cost is not None and cost <= most else plan


def pulled(
    instance: Instance,
    plan: Placement,
    most: int,
    over: Callable[[], bool] = lambda: False,
    seed: int = 0,
) -> Placement:
    """The plan with fewer moved bytes, found by annealing within a limit on them that falls from
    pass to pass.

    Tables take their own option or their old one. Where tables must change places together,
    :func:`returned` is stuck and this is not. Without ``over``, equal calls give equal plans. The
    compiled loops must be loaded.

    Parameters
    ----------
    plan : Placement
        Costs at most ``most``.
    over : callable
        Whether the time is over.
    """
    free = replace(instance, max_moved_tables=MAX_VALUE, max_moved_bytes=MAX_VALUE)
    kept = np.zeros(instance.num_options, dtype=bool)
    kept[plan.options] = True
    kept[[now.option for now in instance.current if now.option >= 0]] = True
    sampler, step, misses, passes = Sampler(free, seed), PULLED_STEP, 0, 0
    sampler.choose_from(kept & instance.allowed)
    while misses < PULLED_PATIENCE and passes < PULLED_PASSES and not over():
        passes += 1
        sampler.reseed(seed + passes)
        held = replace(free, max_moved_bytes=int((1 - step) * bytes_away(instance, plan)))
        within = Within(_aims(instance, plan, most), over, most, held)
        sampler.run(plan, within, [PULLED_HEATS], PULLED_MOVES * instance.num_tables)
        found = _fewest(instance, sampler, plan, most)
        misses, step = (
            (misses + 1, step * PULLED_LESS)
            if found is plan
            else (0, min(PULLED_STEP, step / PULLED_LESS))
        )
        plan = found
    return plan


def _aims(instance: Instance, plan: Placement, most: int) -> list[int]:
    """A cost of ``most``; of every phase its share in the plan where barriers divide phases."""
    if not instance.by_phase:
        return [most]
    tops = exposed(instance, compute_loads(instance, plan)).tolist()
    return [max(1, top * most // max(1, sum(tops))) for top in tops]


def _fewest(instance: Instance, sampler: Sampler, plan: Placement, most: int) -> Placement:
    """Of the plan, the sampler's state and the best plan it met: the one within the cost that moves
    fewest bytes."""
    states = [state for state in (sampler.placement(), sampler.plan()) if state is not None]
    costs = [_cost(instance, state) for state in states]
    plans = [s for s, cost in zip(states, costs, strict=True) if cost is not None and cost <= most]
    return min([plan, *plans], key=lambda state: bytes_away(instance, state))


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


def bytes_away(instance: Instance, plan: Placement) -> int:
    """Bytes that a plan moves from ``current``."""
    return moved_bytes(instance, plan, moved_tables(instance, plan))
