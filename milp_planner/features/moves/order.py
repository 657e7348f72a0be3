"""Move from one placement to another, table by table, within the capacities at every step.

A table that moves counts at both ends: its new shards are filled while the old ones still serve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations import Instance, Placement
from formulations.instance import IntArray, Objective, Scope
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.result.piles import piles
from milp_planner.files import Facts
from milp_planner.plans.compile import as_current

#: Most intermediate plans that the solver-free check judges; the objective of the others comes from
#: the sums that order the steps. With fusion groups, which a move might mix, it judges all of them.
CHECKED = 200


@dataclass(frozen=True)
class Move:
    """One step: these tables leave their old places for the new ones."""

    tables: tuple[str, ...]
    """One table, or several that share a cache ratio and so must change together."""
    bytes: int
    """Bytes transferred."""
    objective: int | None
    """Objective after the step, in the Instance's time unit; None where that plan mixes cache
    ratios in a fusion group."""


@dataclass(frozen=True)
class Migration(Facts):
    """The sequence of moves from one placement to another."""

    before: int
    """Objective before the first step."""
    moves: tuple[Move, ...]
    """In an order that never exceeds a capacity."""
    stuck: tuple[str, ...]
    """Tables for which no such order was found: memory is too tight to hold old and new at once."""


def migration(
    instance: Instance, before: Placement, after: Placement
) -> tuple[Migration, list[Placement]]:
    """An order of moves between two placements of one Instance, and the placement after each.

    Two greedy orders are tried. Forwards, the next step is the one that fits and lowers the
    objective most; ties go to the one that adds least memory. Backwards from the end, it is the one
    whose undoing costs least, which finds moves that only pay off together. The order with the
    cheaper intermediate plans is returned. Greedy may leave tables stuck where another order would
    not.
    """
    known = replace(instance, current=as_current(before))
    todo = _together(known, before, after)
    order, values, left = _ordered(instance, before, after, todo)
    value: int | None
    steps: list[Move] = []
    placements: list[Placement] = []
    start = check(instance, before)
    each = bool(instance.fusion_groups) or not start.feasible
    placement, every = before, 1 if each else 1 + int(len(order) / CHECKED)
    for done, index in enumerate(order, start=1):
        options, ranks, value = placement.options.copy(), list(placement.ranks), values[done - 1]
        for table in todo[index]:
            options[table], ranks[table] = after.options[table], after.ranks[table]
        placement = Placement(options, ranks)
        if done % every == 0 or done == len(order):
            verdict = check(instance, placement)
            value = verdict.objectives.get(instance.objective.value) if verdict.feasible else None
        names = tuple(instance.table_names[t] for t in todo[index])
        steps.append(Move(names, moved_bytes(known, after, todo[index]), value))
        placements.append(placement)
    stuck = tuple(instance.table_names[t] for i in left for t in todo[i])
    return Migration(start.objectives[instance.objective.value], tuple(steps), stuck), placements


def _ordered(
    instance: Instance, before: Placement, after: Placement, todo: list[list[int]]
) -> tuple[list[int], list[int], list[int]]:
    """The better of the two orders, the objective after each step, and the steps left out."""
    ahead, back = _Way(instance, before, after, todo), _Way(instance, after, before, todo)
    order, values = ahead.greedy_order()
    undone, costs = back.greedy_order()
    if back.left() or (not ahead.left() and sum(values[:-1]) <= sum(costs[:-1])):
        return order, values, ahead.left()
    end = check(instance, after).objectives[instance.objective.value]
    return undone[::-1], [*costs[-2::-1], end], []


def _together(known: Instance, before: Placement, after: Placement) -> list[list[int]]:
    """The moving tables, grouped where they must change the level of a fusion group together."""
    level_of: dict[int, set[int]] = {}
    for option in (*before.options, *after.options):
        group = int(known.option_group[option])
        level_of.setdefault(group, set()).add(int(known.option_level[option]))
    groups: dict[tuple[str, int], list[int]] = {}
    for table in moved_tables(known, after):
        ends = {int(known.option_group[p.options[table]]) for p in (before, after)} - {-1}
        changing = sorted(g for g in ends if len(level_of[g]) > 1)
        key = ("group", changing[0]) if changing else ("table", table)
        groups.setdefault(key, []).append(table)
    return list(groups.values())


class _Way:
    """The loads so far, and the change that every step would make; arrays [steps, ranks, …]."""

    def __init__(
        self, instance: Instance, before: Placement, after: Placement, todo: list[list[int]]
    ) -> None:
        self._instance = instance
        loads = [piles(instance, before, [t])[:2] for t in range(instance.num_tables)]
        cost = sum((cost for cost, _ in loads), np.zeros_like(loads[0][0]))
        use = sum((use for _, use in loads), np.zeros_like(loads[0][1]))
        saved = np.zeros((len(todo), *cost.shape), dtype=np.int64)
        new = np.zeros((len(todo), *use.shape), dtype=np.int64)
        old = np.zeros_like(new)
        for step, tables in enumerate(todo):
            for table in tables:
                there = piles(instance, after, [table])[:2]
                saved[step] += loads[table][0] - there[0]
                new[step] += there[1]
                old[step] += loads[table][1]
        self._more = (new - old).sum(axis=(1, 2))
        peaks = instance.by_phase
        self._cost = cost if peaks else cost.sum(axis=1, keepdims=True)
        self._saved = saved if peaks else saved.sum(axis=2, keepdims=True)
        self._use, self._new, self._old = (self._by_place(part) for part in (use[None], new, old))
        rooms = [np.zeros(0, dtype=np.int64), *(r.capacity for r in instance.resources)]
        self._room = np.concatenate(rooms)
        self._open = np.arange(len(todo))

    def _by_place(self, use: IntArray) -> IntArray:
        """Use per place of each resource, concatenated over the resources."""
        places = [np.zeros((len(use), 0), dtype=np.int64)]
        for index, resource in enumerate(self._instance.resources):
            at = use[:, :, index]
            if resource.scope == Scope.MACHINE:
                parts = [at[:, list(ranks)].sum(axis=1) for ranks in self._instance.machines]
                at = np.stack(parts, axis=1)
            elif resource.scope == Scope.CLUSTER:
                at = at.sum(axis=1, keepdims=True)
            places.append(at)
        return np.concatenate(places, axis=1)

    def greedy_order(self) -> tuple[list[int], list[int]]:
        """Steps in greedy order until none fits, and the objective after each."""
        order: list[int] = []
        values: list[int] = []
        while (found := self._best()) is not None:
            step, value = found
            self._cost = self._cost - self._saved[step]
            self._use = self._use + self._new[step] - self._old[step]
            self._open = self._open[self._open != step]
            order.append(step)
            values.append(value)
        return order, values

    def _best(self) -> tuple[int, int] | None:
        """The best step that fits, and the objective after it; None when none fits."""
        fits = self._open[(self._use + self._new[self._open] <= self._room).all(axis=1)]
        if not len(fits):
            return None
        value = self._objective(self._cost - self._saved[fits])
        best = int(np.lexsort((self._more[fits], value))[0])
        return int(fits[best]), int(value[best])

    def left(self) -> list[int]:
        """Steps not taken."""
        return self._open.tolist()

    def _objective(self, cost: IntArray) -> IntArray:
        if self._instance.objective == Objective.TOTAL:
            return np.asarray(cost.sum(axis=(1, 2)))
        hidden = self._instance.hidden_time if self._instance.by_phase else 0
        return np.asarray(np.maximum(cost.max(axis=1) - hidden, 0).sum(axis=1))
