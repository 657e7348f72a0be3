"""Choices of options whose shards fit beside what every rank carries anyway.

Where tables lie on every rank, a rank has less time and memory left than its target and capacity
say. At a target, only options are used whose largest shard fits into what is left (the bare rule
of docs/proof.md, with the chosen options in place of the least ones). Where each phase has a peak,
that is at least the phase's mean; a shard that exceeds the mean raises the objective by that, and
other shards raise other phases. Of the options that fit, every table takes the cheapest. If they
exceed what all ranks have together, each resource gets a price at which they do not. If they do
not, a shard pays for the time that it leaves unused on its rank: one that fills a rank's memory but
takes little time leaves no room for others.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray
from formulations.instance.facts import option_facts, per_option, shard_counts, total_use
from formulations.patterns.found import Floats
from formulations.proof.rows import measures
from formulations.search.numbers import FITTING_ROUNDS, FITTING_STEPS, RAISED


class Fitting:
    """What options put on ranks, in floating point: costs and resources of scope rank.

    Parameters
    ----------
    instance : Instance
        Its objective is not ``total``.
    """

    def __init__(self, instance: Instance) -> None:
        found = measures(instance)
        costs, counted = len(found.costs), found.counted
        self._instance = instance

        def merged(values: IntArray) -> Floats:
            head = values[:, counted].sum(axis=1, keepdims=True)
            return np.concatenate([head, values[:, costs:]], axis=1).astype(np.float64)

        self._costs, self._hidden = costs, found.hidden.astype(np.float64)
        self._least, self._peak = found.floor, (found.floor + found.excess).astype(np.float64)
        self._value, self._floor = merged(found.value), merged(found.floor)
        self._most = found.most[costs:].astype(np.float64)
        ranked = [instance.resources[i] for i in found.ranked]
        self._mean = np.asarray([r.capacity.mean() for r in ranked])
        self._times = shard_counts(instance).astype(np.float64)
        shards = np.diff(instance.block_shards)
        self._chooses = np.repeat(~instance.settled, shards) * self._times
        self._total = per_option(instance, self._value * self._times[:, None])
        spent = found.value[:, :costs] * self._times[:, None]
        self._spent = per_option(instance, spent)
        self._cost = option_facts(instance).placed_cost.astype(np.float64)
        self._use = total_use(instance).astype(np.float64)
        self._room = np.asarray([float(r.capacity.sum()) for r in instance.resources])
        self._start = instance.table_options[:-1]

    def least(self, keep: NDArray[np.bool_]) -> int:
        """A cost that the busiest rank has at least: the mean of the cheapest options."""
        cost = np.where(keep, self._cost, np.inf)
        return int(np.minimum.reduceat(cost, self._start).sum() / self._instance.num_ranks)

    def choice(self, keep: NDArray[np.bool_], target: float) -> IntArray | None:
        """The options that fit a target best; None where a table has none that fits.

        Parameters
        ----------
        keep : bool array [options]
        target : float
            Cost of a rank.

        Returns
        -------
        int64 array [tables] or None
        """
        use, unused = self._use, np.zeros(len(keep))
        price = np.zeros(use.shape[1])
        options, keep = None, keep.copy()
        for _ in range(FITTING_ROUNDS):
            if not np.logical_or.reduceat(keep, self._start).all():
                return None
            cost = np.where(keep, self._cost, np.inf)
            price = self._priced(cost, use, price)
            new = self._cheapest(cost + use @ price + (0.0 if price.any() else unused))
            misfit = keep & self._misfit(new, target)
            if options is not None and (new == options).all() and not misfit[new].any():
                return options
            options, keep, unused = new, keep & ~misfit, self._unused(new, target)
        return options

    def _misfit(self, options: IntArray, target: float) -> NDArray[np.bool_]:
        """Options whose largest shard does not fit beside what the choice puts on every rank."""
        least, costs = self._least[options], self._costs
        full = (least.sum(axis=0) - least)[self._instance.table_of] + self._peak
        mean = self._spent[options].sum(axis=0) / self._instance.num_ranks
        even = self._exposed(mean)
        share = 1.0 if costs == 1 else RAISED
        most = even + share * np.maximum(0.0, target - even)
        dear = self._exposed(np.maximum(mean, full[:, :costs])) > most
        return np.asarray(dear | (full[:, costs:] > self._most).any(axis=1))

    def _exposed(self, peaks: Floats) -> Floats:
        """The objective of the peaks of costs [..., costs]."""
        return np.asarray(np.maximum(peaks - self._hidden, 0.0).sum(axis=-1))

    def _cheapest(self, cost: Floats) -> IntArray:
        order = np.lexsort((cost, self._instance.table_of))
        return np.asarray(order[self._start], dtype=np.int64)

    def _priced(self, cost: Floats, use: Floats, price: Floats) -> Floats:
        """Prices of the resources at which the cheapest options together fit, one after the
        other; those that make no difference are 0."""
        if (use[self._cheapest(cost)].sum(axis=0) <= self._room).all():
            return np.zeros_like(price)
        price = price.copy()
        for _ in range(2):
            for index, room in enumerate(self._room.tolist()):
                own = use[:, index]
                others = cost + use @ price - own * price[index]
                price[index] = self._one_price(others, own, room)
        return price

    def _one_price(self, cost: Floats, use: Floats, room: float) -> float:
        """The least price of one resource at which the cheapest options fit."""

        def over(price: float) -> bool:
            return bool(use[self._cheapest(cost + price * use)].sum() > room)

        if not over(0.0):
            return 0.0
        low, high = 0.0, max(1e-9, float(cost[np.isfinite(cost)].max(initial=1.0))) / room
        while over(high) and high < 1e12:
            low, high = high, 8 * high
        for _ in range(FITTING_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if over(middle) else (low, middle)
        return high

    def _unused(self, options: IntArray, target: float) -> Floats:
        """Time that each option leaves unused on its ranks for want of memory, where the other
        shards need as much memory for their time as those of the choice do, of the target or, if
        that is less, of the time that a rank has to work."""
        carried = self._floor[options].sum(axis=0)
        rest = self._total[options].sum(axis=0) - self._instance.num_ranks * carried
        dense = np.maximum(rest[1:], 0.0) / max(rest[0], 1e-9)
        mean = self._total[options].sum(axis=0)[0] / self._instance.num_ranks
        left = min(target, mean) - carried[0] - self._value[:, 0]
        memory = (self._mean - carried[1:] - self._value[:, 1:]) / np.maximum(dense, 1e-12)
        filled = np.maximum(memory.min(axis=1, initial=np.inf), 0.0)
        idle = np.maximum(0.0, left - filled) * self._chooses
        return np.asarray(per_option(self._instance, idle), dtype=np.float64)


@lru_cache(maxsize=1)
def fitting(instance: Instance) -> Fitting:
    """What fits on the ranks of an instance, cached for the next call with the same instance."""
    return Fitting(instance)
