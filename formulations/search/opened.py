"""Which part of a placement to open next: ranks with all they hold, or tables on all ranks."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from formulations.instance import Instance, Objective
from formulations.result.check import Loads
from formulations.result.placement import Placement

#: A neighbourhood beyond this many placing columns is too slow to build and solve.
MAX_COLUMNS = 6_000


@dataclass
class Sizes:
    """How much each kind of neighbourhood opens; adapts to how fast the last ones were solved."""

    ranks: float = 3.0
    tables: float = 12.0
    history: dict[str, list[int]] = field(default_factory=dict)

    def learn(self, kind: str, solved: bool, improved: bool) -> None:
        """Grow after a solve to optimality, shrink otherwise."""
        factor = 1.04 if solved else 0.93
        if kind == "ranks":
            self.ranks = max(2.0, self.ranks * factor)
        else:
            self.tables = max(4.0, self.tables * factor)
        tried = self.history.setdefault(kind, [0, 0])
        tried[0] += 1
        tried[1] += int(improved)


class Chooser:
    """Draws parts of a placement to open.

    Parameters
    ----------
    instance : Instance
    keep : bool array [options]
    rng : Random
    sizes : Sizes, optional
        Of an earlier search, to go on from.
    """

    def __init__(
        self,
        instance: Instance,
        keep: np.ndarray,
        rng: random.Random,
        sizes: Sizes | None = None,
    ) -> None:
        self._instance, self._rng = instance, rng
        options = np.add.reduceat(keep.astype(np.int64), instance.table_options[:-1])
        self._choices = options
        self.sizes = Sizes() if sizes is None else sizes

    def draw(self, placement: Placement, load: Loads) -> tuple[str, list[int], np.ndarray]:
        """A kind, the tables and the free ranks of the next neighbourhood."""
        order = self._by_pressure(load)
        kind = "tables" if self._instance.num_ranks == 1 else self._rng.choice(["ranks", "tables"])
        if kind == "ranks":
            return (kind, *self._ranks(placement, order))
        return (kind, *self._tables(placement, order))

    def _by_pressure(self, load: Loads) -> list[int]:
        """Ranks, fullest first: by overflow, then by cost."""
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
            cost = load.peaked(instance.objective).astype(np.float64)
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
        """Whether a table's shards sit inside the free ranks, partly outside, or partly outside
        but as wide as their option has them, so that they need no free rank (``spread``)."""
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
        top = [t for t in range(self._instance.num_tables) if _touches(placement, t, order[0])]
        tables = self._rng.sample(top, min(len(top), 2 + count // 6)) + tables
        tables = list(dict.fromkeys(tables))
        return self._capped(tables, int(free.sum())), free

    def _open_ranks(self, order: list[int]) -> np.ndarray:
        """All ranks, or the fullest, the emptiest and some others when there are many."""
        ranks = self._instance.num_ranks
        free = np.ones(ranks, dtype=bool)
        if ranks > 32:
            free[:] = False
            free[order[:2]] = True
            free[order[-6:]] = True
            free[self._rng.sample(order, 8)] = True
        return free

    def _capped(self, tables: list[int], ranks: int) -> list[int]:
        """As many tables as keep the model small."""
        total, kept = 0, list[int]()
        for table in tables:
            total += int(self._choices[table]) * (1 + ranks // 2)
            if total > MAX_COLUMNS and kept:
                break
            kept.append(table)
        return kept


def _touches(placement: Placement, table: int, rank: int) -> bool:
    return any(rank in ranks for ranks in placement.ranks[table] if 0 < len(ranks) <= 64)
