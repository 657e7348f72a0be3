"""A plan near a wish: what a plan of yesterday becomes where it no longer fits, or lacks tables.

Tables that the wish does not place are packed, the largest shards first. Where that exceeds a
capacity, compiled annealing looks for a plan within limits on the tables and bytes that move from
the plan in production, and the limits grow until there is one; then tables go home as long as that
breaks nothing. The fewest bytes come first, the objective after that, from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray
from formulations.instance.facts import own_cost, per_option, shard_counts
from formulations.instance.instance import MAX_VALUE
from formulations.presolve import usable
from formulations.reduce import OptionBounds, bounds_at
from formulations.result.certificate import Certificate
from formulations.result.check import check, compute_loads, moved_bytes, moved_tables
from formulations.result.placement import Placement
from formulations.search.anneal import Annealer
from formulations.search.loops import waited_for

#: Moves a table, and the heats of the first and the last of them, of one try within limits.
_MOVES, _HEATS = 100, (2e-3, 2e-5)
#: The first limits: so many tables, or one in so many, and so many times what is too much
#: somewhere. By how much limits grow that met no plan, and how often.
_TABLES, _ROOM, _GROWTH, _LIMITS = 30, 4, 3, 8
#: What a plan may cost above the wish, as a share of that: little first, then any price will do.
_DEARER = (0.001, 0.02, None)
#: Options that moves may choose: no dearer at the multipliers than the bound and this share of it.
_WORTH = 0.005


def complete(instance: Instance, wish: Placement) -> bool:
    """Whether a wish says where every table is, in its option's blocks."""
    return bool((wish.options >= 0).all()) and bool(check(instance, wish).objectives)


def settled(
    instance: Instance,
    wish: Placement,
    prices: Certificate | None = None,
    over: Callable[[], bool] = lambda: False,
    stop: Callable[[], bool] = lambda: False,
    seed: int = 0,
) -> Placement | None:
    """A plan in which few bytes have moved; None where none was found.

    Parameters
    ----------
    instance : Instance
        Moves are counted from its ``current``.
    wish : Placement
        Option −1, or ranks that do not suit its option: the table may be anywhere.
    prices : Certificate, optional
        Multipliers that say which options are worth a look; else a table without an option gets the
        cheapest by itself.
    over : callable
        Whether the time is over: a first try is made all the same, as without a plan to start
        from all that was known would be lost.
    stop : callable
        Whether to stop at once.
    seed : int
    """
    if complete(instance, wish) and check(instance, wish).feasible:
        return wish
    able = usable(instance)
    if not np.logical_or.reduceat(able, instance.table_options[:-1]).all() or not waited_for(over):
        return None
    bounds = None if prices is None else bounds_at(instance, able, prices)
    worth = own_cost(instance) if bounds is None else bounds.of_option
    known = (wish.options >= 0) & able[wish.options]
    options = np.where(known, wish.options, _least(instance, able, worth))
    keep = able if bounds is None else _worthwhile(bounds, able, options)
    search = _Search(instance, Placement(options, wish.ranks), keep, seed)
    plan = search.packed()
    for number, dearer in enumerate(_DEARER):
        if plan is None and not stop() and not (number and over()):
            plan = search.mended(dearer, stop)
    return plan if plan is not None and check(instance, plan).feasible else None


def _least(instance: Instance, able: NDArray[np.bool_], worth: IntArray) -> IntArray:
    """Of every table the usable option that is worth least."""
    order = np.lexsort((worth, ~able, instance.table_of))
    return np.asarray(order[instance.table_options[:-1]], dtype=np.int64)


def _worthwhile(
    bounds: OptionBounds, able: NDArray[np.bool_], options: IntArray
) -> NDArray[np.bool_]:
    """Options that may be worth a look, and those of the wish."""
    keep = bounds.below(bounds.bound + int(_WORTH * abs(bounds.bound)) + 1)
    keep[options] = True
    return keep & able


class _Search:
    """Tries within limits on what moves, each from the wish."""

    def __init__(
        self, instance: Instance, wish: Placement, keep: NDArray[np.bool_], seed: int
    ) -> None:
        if instance.current:
            instance = replace(instance, max_moved_tables=MAX_VALUE, max_moved_bytes=MAX_VALUE)
        self._instance, self._wish = instance, wish
        self._annealer = Annealer(instance, seed)
        self._annealer.choose_from(keep)
        self._annealer.settle(wish)
        self._tops = self._annealer.tops
        self._start = self._annealer.placement()
        self._loads = compute_loads(instance, self._start)
        self._moved = moved_tables(instance, self._start)
        self._home = _preferences(instance)

    def packed(self) -> Placement | None:
        """The wish with the other tables packed, where that is a plan."""
        return self._start if check(self._instance, self._start).feasible else None

    def mended(self, dearer: float | None, stop: Callable[[], bool]) -> Placement | None:
        """The plan found within the least limits that held one; None where none did."""
        target = self._target(dearer)
        tables = len(self._moved) + max(_TABLES, self._instance.num_tables // _TABLES)
        size = moved_bytes(self._instance, self._start, self._moved) + _ROOM * self._short()
        for _ in range(_LIMITS):
            plan = self._within(tables, size, target, stop)
            if plan is not None or stop():
                return plan
            tables, size = _GROWTH * tables, _GROWTH * size + 1
        return None

    def _target(self, dearer: float | None) -> list[int]:
        """What every phase may cost."""
        if dearer is None:
            return [MAX_VALUE] * len(self._tops)
        return [top + int(dearer * abs(top)) + 1 for top in self._tops]

    def _short(self) -> int:
        """Use beyond capacity, where most is missing."""
        pairs = zip(self._loads.use, self._instance.resources, strict=True)
        return max((int(np.maximum(u - r.capacity, 0).sum()) for u, r in pairs), default=0)

    def _within(
        self, tables: int, size: int, target: list[int], stop: Callable[[], bool]
    ) -> Placement | None:
        annealer, held = self._annealer, self._instance
        annealer.load(self._start, target)
        if held.current:
            held = replace(
                held, max_moved_tables=min(tables, MAX_VALUE), max_moved_bytes=min(size, MAX_VALUE)
            )
            annealer.hold(held)
        most = sum(target)
        annealer.run(_MOVES * max(1, held.num_tables), _HEATS, stop, least=most)
        if annealer.value is None:
            return None
        plan = annealer.placement(best=True)
        annealer.load(plan, target)
        annealer.tidy(self._home, most)
        best = annealer.placement()
        return next((each for each in (best, plan) if check(held, each).feasible), None)


def _preferences(instance: Instance) -> IntArray:
    """Bytes that move with every option anywhere, then with every option as in production (none);
    int64 array [2 × options]."""
    size = per_option(instance, instance.shard_move * shard_counts(instance))
    known = np.isin(instance.table_of, [now.table for now in instance.current])
    return np.concatenate([(size + 1) * known, np.zeros_like(size)]).astype(np.int64)
