"""Repair: a plan close to yesterday's, where that no longer fits or lacks tables.

The *wish* is yesterday's placement on today's instance. Tables that it does not place are packed,
the largest shards first. If some capacity is then exceeded, compiled annealing looks for a plan in
a few tries, each with larger limits on what moves or on the cost; then tables return to where they
were as long as every capacity holds. Few moved bytes come first, the objective
second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import floor
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective
from formulations.instance.facts import bytes_to_move, own_cost, shown_cost
from formulations.instance.instance import MAX_VALUE
from formulations.presolve import usable
from formulations.reduce import OptionBounds, bounds_at
from formulations.result.certificate import Certificate
from formulations.result.check import check, compute_loads, moved_bytes, moved_tables, value_of
from formulations.result.placement import Placement
from formulations.search.anneal import Sampler, Within
from formulations.search.loops import waited_for
from formulations.search.numbers import NEAR
from formulations.search.parameters import DEFAULT

#: Seconds left, where there is a clock.
Left = Callable[[], float] | None


def complete(instance: Instance, wish: Placement) -> bool:
    """Whether a wish places every table, in its option's blocks."""
    return bool((wish.options >= 0).all()) and bool(check(instance, wish).objectives)


def settled(  # noqa: PLR0913 - more arguments than others, until time is one of them
    instance: Instance,
    wish: Placement,
    prices: Certificate | None = None,
    over: Callable[[], bool] = lambda: False,
    stop: Callable[[], bool] = lambda: False,
    left: Left = None,
    seed: int = 0,
    least: int = 0,
    improve: bool = True,
) -> Placement | None:
    """A plan for which few bytes move, the wish if that is one; None if none was found.

    If the instance limits moves, the plan is then improved within these limits until the time is
    over.

    Parameters
    ----------
    instance : Instance
        Moves are counted from its ``current``.
    wish : Placement
        A table with option −1, or with ranks that do not suit its option, may be anywhere.
    prices : Certificate, optional
        Multipliers that tell which options are promising; without them a table without an option
        gets its own cheapest one.
    over : callable
        Whether the time is over. The repair itself goes on, since without any plan to start from
        all that yesterday's solve knew would be lost.
    stop : callable
        Whether to stop at once.
    left : callable, optional
        Seconds left, to which the length of passes is fitted; without it their length is fixed, so
        that equal calls give equal plans.
    seed : int
    least : int
        Bytes that must move at least, if that is known.
    improve : bool
        Whether to do so.
    """
    improve = improve and instance.limits_moves
    known = wish if fits(instance, wish) else None
    if known is not None and not improve:
        return known
    able = usable(instance)
    if not np.logical_or.reduceat(able, instance.table_options[:-1]).all() or not waited_for(stop):
        return known
    wish, keep, bound = _choices(instance, wish, prices, able)
    search = _Search(instance, wish, keep, bound, seed)
    plan = search.packed() or search.mended(over, stop, least)
    if plan is None or not check(instance, plan).feasible:
        return known
    return search.improved(plan, over, left) if improve else plan


def fits(instance: Instance, wish: Placement) -> bool:
    """Whether a wish is a plan."""
    return complete(instance, wish) and check(instance, wish).feasible


def nearest(
    instance: Instance,
    wish: Placement,
    most: int,
    prices: Certificate | None = None,
    over: Callable[[], bool] = lambda: False,
    seed: int = 0,
) -> Placement | None:
    """A plan that costs at most ``most`` and moves few bytes beside those of a wish that is a plan;
    None if none was found.

    Limits on moved bytes grow, and what the search within one limit found is where the next begins.
    Without ``over``, equal calls give equal plans. The compiled loops must be loaded.
    """
    if _affordable(instance, wish, most):
        return wish
    _, keep, bound = _choices(instance, wish, prices, usable(instance))
    least = moved_bytes(instance, wish, moved_tables(instance, wish))
    every = moved_bytes(instance, wish, [now.table for now in instance.current])
    near = wish
    for share in NEAR.shares:
        if over():
            break
        size = min(least + int(share * every), _or_most(instance.max_moved_bytes))
        held = replace(instance, max_moved_bytes=size)
        search = _Search(held, wish, keep, bound, seed)
        # from far above, small steps never get there; from near, a leap seldom ends well
        near = search.leapt(most, over) or search.improved(near, over, None, most)
        if _affordable(instance, near, most):
            return near
    return None


def _affordable(instance: Instance, wish: Placement, most: int) -> bool:
    value = value_of(instance, wish)
    return value is not None and value <= most


def _choices(
    instance: Instance, wish: Placement, prices: Certificate | None, able: NDArray[np.bool_]
) -> tuple[Placement, NDArray[np.bool_], int]:
    """The wish with an option for every table, the options that moves may choose, and a lower
    bound, from the multipliers if there are any."""
    known = (wish.options >= 0) & able[wish.options]
    bounds = None if prices is None else bounds_at(instance, able, prices)
    if bounds is not None and bounds.bound < NEAR.weak * _mean(instance, wish.options[known]):
        bounds = None
    keep = able if bounds is None else _worthwhile(bounds, able, wish.options[known])
    options = np.where(known, wish.options, _least(instance, keep, own_cost(instance)))
    if bounds is not None:
        return Placement(options, wish.ranks), keep, bounds.bound
    cheapest = _least(instance, able, shown_cost(instance))
    return Placement(options, wish.ranks), keep, floor(_mean(instance, cheapest))


def _mean(instance: Instance, options: IntArray) -> float:
    """Average cost of a rank with these options, in phases of which nothing is hidden; under
    ``total`` the sum of all costs."""
    cost = shown_cost(instance)
    ranks = 1 if instance.objective == Objective.TOTAL else instance.num_ranks
    return float(cost[options].sum()) / ranks


def _least(instance: Instance, keep: NDArray[np.bool_], worth: IntArray) -> IntArray:
    """The kept option of every table with the least ``worth``."""
    order = np.lexsort((worth, ~keep, instance.table_of))
    return np.asarray(order[instance.table_options[:-1]], dtype=np.int64)


def _worthwhile(
    bounds: OptionBounds, able: NDArray[np.bool_], options: IntArray
) -> NDArray[np.bool_]:
    keep = bounds.below(bounds.bound + int(NEAR.worth * abs(bounds.bound)) + 1)
    keep[options] = True
    return keep & able


class _Search:
    """Tries within limits on moves, each from the wish."""

    def __init__(
        self, instance: Instance, wish: Placement, keep: NDArray[np.bool_], bound: int, seed: int
    ) -> None:
        self._asked, self._bound, self._seconds = instance, bound, 0.0
        if instance.current:
            instance = replace(instance, max_moved_tables=MAX_VALUE, max_moved_bytes=MAX_VALUE)
        self._instance, self._wish = instance, wish
        self._sampler = Sampler(instance, seed, replace(DEFAULT, shrink=NEAR.shrink))
        self._keep, self._seed = keep, seed
        self._sampler.choose_from(keep)
        self._sampler.settle(wish)
        self._tops = self._sampler.tops
        self._start = self._sampler.placement()
        self._loads = compute_loads(instance, self._start)
        self._moved = moved_tables(instance, self._start)
        self._home = preferences(instance)

    def packed(self) -> Placement | None:
        """The wish with all other tables packed, if that is a plan."""
        return self._start if check(self._instance, self._start).feasible else None

    def mended(
        self, over: Callable[[], bool], stop: Callable[[], bool], least: int
    ) -> Placement | None:
        """The first plan of a few tries, which may move and cost more and more; None if all fail.

        Once the time is over, only the last tries are left.
        """
        tables = len(self._moved) + max(NEAR.tables, self._instance.num_tables // NEAR.tables)
        size = moved_bytes(self._instance, self._start, self._moved) + NEAR.room * self._short()
        size = max(size, NEAR.above * least)
        for number, (times, dearer, heats) in enumerate(NEAR.tries):
            if over() and number < len(NEAR.tries) - NEAR.late:
                continue
            limits = None if times is None else (times * tables, times * size)
            plan = self._within(limits, dearer, heats, stop)
            if plan is not None or stop():
                return plan
        return None

    def leapt(self, most: int, over: Callable[[], bool]) -> Placement | None:
        """A plan of at most this cost, from the wish in one pass; None if it was missed."""
        self._run(self._start, Within(self._cost(self._start, most), over, 0, self._asked), None)
        found = self._better(most + 1)
        return None if found is None else self._homed(found, [most])

    def improved(
        self, plan: Placement, over: Callable[[], bool], left: Left, enough: int | None = None
    ) -> Placement:
        """The best plan found within the limits on moves, until the time is over or several passes
        in a row find nothing; tables that moved for nothing go home. If it is asked for a cost that
        is ``enough``, it ends there, or after a few passes.

        Each pass aims below the plan's cost, at a share of the way to the bound that grows after a
        success and shrinks after a failure. What a pass ends with is often better than the plan
        even where the aim was missed.
        """
        best = self._chosen(plan, over)
        value, step, passes, misses = self._value(best), NEAR.step, 0, 0
        least, most = (self._bound, None) if enough is None else (enough, NEAR.passes)
        while misses < NEAR.patience and value > max(self._bound, least) and not over():
            if passes == most:
                break
            passes += 1
            self._sampler.reseed(self._seed + passes)
            lower = value - max(1, int(step * (value - self._bound)))
            self._run(best, Within(self._cost(best, lower), over, 0, self._asked), left)
            found = self._better(value)
            if found is None:
                misses, step = misses + 1, step * NEAR.less
            else:
                misses, step = 0, min(1.0, step / NEAR.less)
                value = self._value(found)
                best = self._homed(found, [value])  # which leaves room for others to move
        return best

    def _better(self, value: int) -> Placement | None:
        """The cheaper of the best plan that the last pass met and the state it ended in; None if
        neither is a plan below ``value``."""
        states = [self._sampler.placement(), self._sampler.plan()]
        plans = [state for state in states if state and check(self._asked, state).feasible]
        plans = [plan for plan in plans if self._value(plan) < value]
        return min(plans, key=self._value, default=None)

    def _run(self, plan: Placement, within: Within, left: Left) -> None:
        """Run one pass, and measure how long a move takes."""
        moves = self._length(left)
        self._sampler.begin(plan, within)
        begin = perf_counter()
        made = self._sampler.run(None, within, [NEAR.heats], moves)
        self._seconds = (perf_counter() - begin) / max(1, made)

    def _length(self, left: Left) -> int:
        """Number of moves of the next pass: enough to cool well, but at most its share of the time
        left."""
        most = NEAR.longest * self._instance.num_tables
        if left is None:
            return most
        afford = NEAR.share * left() / max(self._seconds, 1e-9)
        return max(NEAR.least * self._instance.num_tables, int(min(most, afford)))

    def _chosen(self, plan: Placement, over: Callable[[], bool]) -> Placement:
        """The plan after improving only the tables that may be anywhere."""
        instance, sampler = self._instance, self._sampler
        free = ~np.isin(instance.table_of, [now.table for now in instance.current])
        if not free.any() or not instance.current:
            return plan
        own = np.zeros(instance.num_options, dtype=bool)
        own[plan.options] = True
        sampler.choose_from(own | (free & self._keep))
        moved = moved_tables(instance, plan)
        size = moved_bytes(instance, plan, moved)
        held = replace(instance, max_moved_tables=len(moved), max_moved_bytes=size)
        within = Within(self._cost(plan), over, 0, held)
        sampler.run(plan, within, [NEAR.heats], NEAR.moves * instance.num_tables)
        found = sampler.plan()
        sampler.choose_from(self._keep)
        if found is None or not check(self._asked, found).feasible:
            return plan
        return found if self._value(found) <= self._value(plan) else plan

    def _homed(self, plan: Placement, target: list[int]) -> Placement:
        """The plan after returning every table to its old place that can, at no higher cost than
        the target."""
        sampler, most = self._sampler, sum(target)
        sampler.begin(plan, Within(self._cost(plan)))
        sampler.tidy(self._home, most)
        homed = sampler.placement()
        return homed if _affordable(self._instance, homed, most) else plan

    def _value(self, plan: Placement) -> int:
        return check(self._instance, plan).objectives[self._instance.objective.value]

    def _cost(self, plan: Placement, total: int | None = None) -> list[int]:
        """Cost of a plan, by phase if the objective has peaks; scaled to ``total`` if given."""
        if len(self._tops) == 1:
            return [self._value(plan) if total is None else total]
        tops = compute_loads(self._instance, plan).cost.max(axis=0).tolist()
        scale = (1, 1) if total is None else (total, max(1, sum(tops)))
        return [max(1, top * scale[0] // scale[1]) for top in tops]

    def _target(self, dearer: float | None) -> list[int]:
        if dearer is None:
            return [MAX_VALUE] * len(self._tops)
        return [top + int(dearer * abs(top)) + 1 for top in self._tops]

    def _short(self) -> int:
        """The largest sum of overflow over the places of one resource."""
        pairs = zip(self._loads.use, self._instance.resources, strict=True)
        return max((int(np.maximum(u - r.capacity, 0).sum()) for u, r in pairs), default=0)

    def _within(
        self, limits: tuple[int, int] | None, dearer: float | None, heats: tuple[float, float],
        stop: Callable[[], bool],
    ) -> Placement | None:  # fmt: skip
        """A plan within the caller's limits on moves, and at most this share dearer than the wish;
        from the wish.

        On the way at most so many tables and bytes may move. Without these limits a table may move
        for a while to make room for another, and whatever can returns at the end.
        """
        sampler, held, target, asked = (
            self._sampler, self._instance, self._target(dearer), self._asked,
        )  # fmt: skip
        if held.current and limits is not None:
            held = replace(
                held,
                max_moved_tables=min(limits[0], _or_most(asked.max_moved_tables)),
                max_moved_bytes=min(limits[1], _or_most(asked.max_moved_bytes)),
            )
        within = Within(target, stop, sum(target), held)
        sampler.run(self._start, within, [heats], NEAR.moves * max(1, held.num_tables))
        plan = sampler.plan()
        if plan is None or not check(held, plan).feasible:
            return None
        plan = self._homed(plan, target)
        return plan if check(asked, plan).feasible else None


def preferences(instance: Instance) -> IntArray:
    """Bytes that move if a table takes an option anywhere, then if it keeps its option and ranks
    (none); int64 array [2 × options]."""
    size = bytes_to_move(instance)
    known = np.isin(instance.table_of, [now.table for now in instance.current])
    return np.concatenate([(size + 1) * known, np.zeros_like(size)]).astype(np.int64)


def _or_most(limit: int | None) -> int:
    return MAX_VALUE if limit is None else limit
