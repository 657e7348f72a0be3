"""Repair by neighbourhoods: open part of a placement, solve it with CP-SAT, repeat.

Shaw, "Using constraint programming and local search methods to solve vehicle routing problems"
(CP 1998), with exact subproblems that minimise what exceeds the capacities.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from formulations.cpsat import Asked, Use, solve_cpsat
from formulations.instance import Instance, Objective
from formulations.model.build import build
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.result.check import Loads, check, compute_loads, objectives
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.numbers import AIMS


class Descent:
    """A placement that exceeds capacities, repaired step by step.

    Parameters
    ----------
    context : Context
    start : Placement
    seed : int
    cap : int
        The objective may not grow beyond it.
    """

    def __init__(self, context: Context, start: Placement, seed: int, cap: int) -> None:
        self._context, self._rng, self._cap = context, random.Random(seed), cap
        self._keep = context.keep.copy()
        self._keep[start.options] |= context.instance.allowed[start.options]  # may keep its options
        self._chooser = Chooser(context.instance, self._keep, self._rng)
        self.placement = start
        self.load = compute_loads(context.instance, start)
        self.over = self._overflow(start, self.load)

    @property
    def objective(self) -> int:
        """Objective of the present placement."""
        return objectives(self._context.instance, self.load)[self._context.instance.objective.value]

    def step(self) -> bool:
        """Open and solve one neighbourhood; returns whether less exceeds the capacities."""
        context = self._context
        kind, tables, free = self._chooser.draw(self.placement, self.load)
        parts = Parts(
            keep=self._keep, limit=max(self._cap, self.objective), base=self.placement,
            tables=np.asarray(tables), repair=True,
        )  # fmt: skip
        model = build(context.instance, by_rank(context.instance, free), parts)
        limits = context.limits(AIMS.opened_work, self._rng.randrange(2**31))
        hint = encode(model, self.placement)
        answer = solve_cpsat(model.linear, limits, hint, Asked(Use.PLANS))
        context.clock.spend(answer.work)
        self._chooser.sizes.learn(kind, answer.done)
        return answer.values is not None and self._accept(decode(model, answer.values))

    def _accept(self, placement: Placement) -> bool:
        """Keep a placement that exceeds capacities by no more; returns whether by less."""
        load = compute_loads(self._context.instance, placement)
        before, over = self.over, self._overflow(placement, load)
        if over <= before:
            self.placement, self.load, self.over = placement, load, over
        return over < before

    def _overflow(self, placement: Placement, load: Loads) -> float:
        """Overflow; a placement that violates another constraint counts as overfull too."""
        instance = self._context.instance
        over = overflow(instance, load)
        return 1e9 if over == 0 and not check(instance, placement).feasible else over


def overflow(instance: Instance, load: Loads) -> float:
    """Sum over all places of the overflow as a share of the place's capacity."""
    over = 0.0
    for resource, use in zip(instance.resources, load.use, strict=True):
        room = np.maximum(resource.capacity, 1)
        over += float((np.maximum(use - resource.capacity, 0) / room).sum())
    return over


@dataclass
class Sizes:
    """Sizes of the neighbourhoods, adapted to whether the last ones were solved to optimality."""

    ranks: float = 3.0
    tables: float = 12.0

    def learn(self, kind: str, solved: bool) -> None:
        """Grow after a solve to optimality, shrink otherwise."""
        factor = 1.04 if solved else 0.93
        if kind == "ranks":
            self.ranks = max(2.0, self.ranks * factor)
        else:
            self.tables = max(4.0, self.tables * factor)


class Chooser:
    """Draws parts of a placement to open: ranks with all their tables, or tables on all ranks.

    Parameters
    ----------
    instance : Instance
    keep : bool array [options]
    rng : Random
    """

    def __init__(self, instance: Instance, keep: np.ndarray, rng: random.Random) -> None:
        self._instance, self._rng, self.sizes = instance, rng, Sizes()
        self._choices = np.add.reduceat(keep.astype(np.int64), instance.table_options[:-1])

    def draw(self, placement: Placement, load: Loads) -> tuple[str, list[int], np.ndarray]:
        """Kind, tables and free ranks of the next neighbourhood."""
        order = self._by_pressure(load)
        kind = "tables" if self._instance.num_ranks == 1 else self._rng.choice(["ranks", "tables"])
        if kind == "ranks":
            return (kind, *self._ranks(placement, order))
        return (kind, *self._tables(placement, order))

    def _by_pressure(self, load: Loads) -> list[int]:
        """Ranks in descending order of overflow, then of cost."""
        instance = self._instance
        pressure = np.zeros(instance.num_ranks)
        for resource, use in zip(instance.resources, load.use, strict=True):
            over = np.maximum(use - resource.capacity, 0)
            share = over / np.maximum(resource.capacity, 1)
            if len(share) == instance.num_ranks:
                pressure += 10 * share
            elif len(share) == len(instance.machines):
                pressure += 10 * share[instance.machine_of]
        if instance.objective != Objective.TOTAL:
            parts = load.cost if instance.by_phase else load.cost.sum(axis=1, keepdims=True)
            cost = parts.astype(np.float64)
            peak = (cost / np.maximum(cost.max(axis=0), 1)).max(axis=1)
            pressure = np.where(pressure > 0, 1 + pressure, peak)
        jitter = np.asarray([self._rng.random() * 1e-3 for _ in range(instance.num_ranks)])
        return np.argsort(-(pressure + jitter), kind="stable").tolist()

    def _ranks(self, placement: Placement, order: list[int]) -> tuple[list[int], np.ndarray]:
        count = min(self._instance.num_ranks, max(2, round(self.sizes.ranks)))
        chosen = [order[0], *self._rng.sample(order[1:], count - 1)]
        free = np.zeros(self._instance.num_ranks, dtype=bool)
        free[chosen] = True
        local, spread = [], []
        for table in range(self._instance.num_tables):
            state = self._reach(placement, table, free)
            if state == "inside":
                local.append(table)
            elif state == "spread":
                spread.append(table)
        self._rng.shuffle(local)
        self._rng.shuffle(spread)
        tables = local + spread[: max(4, len(local) // 3)]
        return self._capped(tables, count), free

    def _reach(self, placement: Placement, table: int, free: np.ndarray) -> str:
        """Where a table's shards lie: on free ranks only (``inside``), partly on others
        (``outside``), or partly on others that its option prescribes (``spread``)."""
        state = "inside"
        blocks = self._instance.blocks_of(int(placement.options[table]))
        for block, ranks in zip(blocks, placement.ranks[table], strict=True):
            if free[ranks].all():
                continue
            if self._instance.free[block]:
                return "outside"
            state = "spread"
        return state

    def _tables(self, placement: Placement, order: list[int]) -> tuple[list[int], np.ndarray]:
        free = self._open_ranks(order)
        count = min(self._instance.num_tables, max(2, round(self.sizes.tables)))
        tables = self._rng.sample(range(self._instance.num_tables), count)
        top = [
            t
            for t in range(self._instance.num_tables)
            if any(order[0] in ranks for ranks in placement.ranks[t] if 0 < len(ranks) <= 64)
        ]
        tables = self._rng.sample(top, min(len(top), 2 + count // 6)) + tables
        tables = list(dict.fromkeys(tables))
        return self._capped(tables, int(free.sum())), free

    def _open_ranks(self, order: list[int]) -> np.ndarray:
        """All ranks or, if there are many, the fullest, the emptiest and some others."""
        ranks = self._instance.num_ranks
        free = np.ones(ranks, dtype=bool)
        if ranks > 32:
            free[:] = False
            free[order[:2]] = True
            free[order[-6:]] = True
            free[self._rng.sample(order, 8)] = True
        return free

    def _capped(self, tables: list[int], ranks: int) -> list[int]:
        """The first tables, as many as keep the model small."""
        total, kept = 0, list[int]()
        for table in tables:
            total += int(self._choices[table]) * (1 + ranks // 2)
            if total > AIMS.opened_columns and kept:
                break
            kept.append(table)
        return kept
