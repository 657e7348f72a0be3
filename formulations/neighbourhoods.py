"""Better plans by neighbourhoods: open some ranks and tables of a plan, let the exact model decide
about these alone, repeat.

Shaw, "Using constraint programming and local search methods to solve vehicle routing problems"
(CP 1998).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock, OutOfTime
from formulations.cpsat import Asked, Use, solve_cpsat
from formulations.instance import Instance, IntArray
from formulations.instance.instance import MAX_VALUE
from formulations.model.build import Model, build
from formulations.model.loads import Row
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.result.check import compute_loads, value_of
from formulations.result.placement import Placement
from formulations.settings import Settings

#: Placing columns of a neighbourhood at most: with more it is too slow to build and solve.
COLUMNS = 20_000
#: By how much the next one is larger, or smaller if this one was not solved.
MORE, FEWER = 1.3, 0.7


@dataclass(frozen=True)
class Size:
    """Ranks and columns of the first neighbourhood that is not the whole instance, units of work
    for each, and how many in a row may find nothing."""

    ranks: float = 8.0
    columns: int = COLUMNS
    units: float = 3.0
    patience: int = 6


@dataclass(frozen=True)
class Sought:
    """What neighbourhoods minimise.

    Attributes
    ----------
    value : callable
        The value of a plan.
    row : callable
        The same in a model, except for a constant, as a row.
    causes : callable
        The tables of a plan to which it owes its value; they are opened first.
    limit : int or None
        The highest objective allowed.
    """

    value: Callable[[Placement], int]
    row: Callable[[Model], Row]
    causes: Callable[[Placement], list[int]]
    limit: int | None = None


@dataclass(frozen=True, eq=False)
class _Near:
    """What a neighbourhood opens: options, ranks and tables of a plan, and whether that is all that
    can matter; or the whole instance, of which no plan is known."""

    keep: NDArray[np.bool_]
    ranks: NDArray[np.bool_]
    tables: IntArray | None = None
    base: Placement | None = None
    whole: bool = True


class Neighbourhoods:
    """A search for a plan with a lower value.

    Parameters
    ----------
    instance : Instance
    sought : Sought
    keep : callable
        Given the value of the best plan, the options that a better one may need, bool array
        [options].
    size : Size
    """

    def __init__(
        self, instance: Instance, sought: Sought, keep: Callable[[int], NDArray[np.bool_]],
        size: Size = Size(),
    ) -> None:  # fmt: skip
        self._instance, self._sought, self._keep, self._size = instance, sought, keep, size

    def least(
        self, plan: Placement | None, enough: int, settings: Settings, clock: Clock, units: float
    ) -> Placement | None:
        """The plan found with the lowest value, from a plan if there is one; None if there is none.

        Parameters
        ----------
        plan : Placement or None
        enough : int
            What is low enough.
        settings : Settings
        clock : Clock
        units : float
            Of the clock.
        """
        end, misses, times, draw = clock.now() + units, 0, 1.0, random.Random(settings.seed)
        most = None if plan is None else self._sought.value(plan)
        while (
            (most is None or most > enough) and misses < self._size.patience and clock.now() < end
        ):
            near = self._drawn(plan, most, times, draw)
            model = self._model(near, clock)
            if model is None:
                break
            hint = None if plan is None else encode(model, plan)
            limits = clock.limits(self._size.units, draw.randrange(2**31), settings.workers)
            answer = solve_cpsat(model.linear, limits, hint, Asked(Use.PLANS))
            clock.spend(answer.work)
            times, misses = times * (MORE if answer.done else FEWER), misses + 1
            found = None if answer.values is None else decode(model, answer.values)
            if found is not None and self._allows(found):
                value = self._sought.value(found)
                if most is None or value < most:
                    plan, most, misses = found, value, 0
            if near.whole and (answer.done or hint is None):
                break
        return plan

    def _allows(self, plan: Placement) -> bool:
        cost, limit = value_of(self._instance, plan), self._sought.limit
        return cost is not None and (limit is None or cost <= limit)

    def _model(self, near: _Near, clock: Clock) -> Model | None:
        """What is sought, over a neighbourhood; None where the time is over."""
        parts = Parts(
            keep=near.keep, limit=self._sought.limit, base=near.base, tables=near.tables,
            cuts=False, check=clock.check,
        )  # fmt: skip
        try:
            model = build(self._instance, by_rank(self._instance, near.ranks), parts)
        except OutOfTime:
            return None
        row = self._sought.row(model)
        model.linear.scale = 1  # costs were scaled, and the objective is at most a constraint
        model.linear.minimise(row.column, row.coefficient)
        return model

    def _drawn(
        self, plan: Placement | None, most: int | None, times: float, draw: random.Random
    ) -> _Near:
        """A neighbourhood: the whole instance if that is small enough, else some ranks and tables
        that choose places among these only, so many times those of the first."""
        instance = self._instance
        ranks = np.ones(instance.num_ranks, dtype=bool)
        if plan is None or most is None:
            return _Near(self._keep(MAX_VALUE), ranks)
        keep, causes = self._keep(most).copy(), self._sought.causes(plan)
        first = instance.table_options[:-1]
        can = np.logical_or.reduceat(keep, first)
        can[causes] = True
        now = np.asarray([n.option for n in instance.current if n.option >= 0], dtype=np.int64)
        keep[now[instance.allowed[now]]] = True
        keep[plan.options] = True
        width = np.add.reduceat(np.where(keep, self._width(instance.num_ranks), 0), first)
        columns = COLUMNS
        if width[can].sum() > columns:
            columns = min(columns, int(times * self._size.columns))
            many = min(instance.num_ranks, max(2, round(times * self._size.ranks)))
            ranks = self._opened(plan, causes, many, draw)
            width = np.add.reduceat(np.where(keep, self._width(int(ranks.sum())), 0), first)
            can &= ~lying(instance, plan)[:, ~ranks].any(axis=1)
        tables = np.flatnonzero(can)
        chance = np.asarray([draw.random() for _ in tables])
        order = np.lexsort((chance, ~np.isin(tables, causes)))
        fits = np.cumsum(width[tables[order]]) <= columns
        whole = bool(ranks.all() and fits.all())
        return _Near(keep, ranks, np.sort(tables[order[fits]]), plan, whole)

    def _width(self, ranks: int) -> IntArray:
        """Columns of each option with so many open ranks, int64 array [options]."""
        instance = self._instance
        each = np.where(instance.whole, len(instance.machines), instance.free * ranks)
        return 1 + np.add.reduceat(np.where(instance.settled, 0, each), instance.option_blocks[:-1])

    def _opened(
        self, plan: Placement, causes: list[int], many: int, draw: random.Random
    ) -> NDArray[np.bool_]:
        """Ranks where some of the causes lie or lay, those with most room, and some others."""
        instance, open_ = self._instance, dict[int, None]()
        now = {each.table: each.ranks for each in instance.current}
        on = lying(instance, plan)
        for table in draw.sample(causes, len(causes)):
            here = {*np.flatnonzero(on[table]).tolist()}
            here |= {rank for block in now.get(table, ()) for rank in block if len(block) <= many}
            if len({*open_} | here) <= many:
                open_ |= dict.fromkeys(here)
        room = np.ones(instance.num_ranks)
        for use, resource in zip(
            compute_loads(instance, plan).use, instance.resources, strict=True
        ):
            if len(use) == instance.num_ranks:
                room = np.minimum(room, 1 - use / np.maximum(1, resource.capacity))
        others = [*np.argsort(-room)[: many // 4].tolist(), *draw.sample(range(len(room)), many)]
        ranks = np.zeros(instance.num_ranks, dtype=bool)
        ranks[[*dict.fromkeys([*open_, *others])][:many]] = True
        return ranks


def lying(instance: Instance, plan: Placement) -> NDArray[np.bool_]:
    """Ranks that each table's shards chose in a plan, bool array [tables, ranks]."""
    found = np.zeros((instance.num_tables, instance.num_ranks), dtype=bool)
    for table, option in enumerate(plan.options.tolist()):
        for block, ranks in zip(instance.blocks_of(option), plan.ranks[table], strict=True):
            if not instance.settled[block]:
                found[table, ranks] = True
    return found
