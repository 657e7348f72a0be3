"""Bound from rank patterns: what one rank may hold, whole shards only.

A *pattern* is a handful of shards that fits one rank and costs a target T or less. If N ranks
cannot cover all tables even with fractions of patterns, no plan costs T or less. Column generation
finds prices that show it (Gilmore and Gomory, "A linear programming approach to the cutting-stock
problem", Operations Research 9, 1961); the proof is in integers and holds for any prices (Farley,
"A note on bounding a class of linear programming problems, including cutting stock problems",
Operations Research 38, 1990).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from formulations.aggregate.cpsat import Limits
from formulations.bounds.own import usable
from formulations.bounds.pattern_master import PatternMaster, Prices
from formulations.bounds.rank_items import Priced, best_pattern, rank_classes, rank_items
from formulations.instance import Instance, IntArray, Objective, Where
from formulations.outcome import BoundSource

#: Share of the best prices so far in the next ones: plain column generation jumps about.
_INERTIA = 0.6
#: Targets closer than this, relative to the upper limit, are not told apart.
_CLOSE = 1e-7
_TOLERANCE = 1e-7
#: Kinds of shard a rank up to which patterns are worth their time.
_FEW = 10
#: Pricing may stop this share of the distance to the proof short of its optimum.
_EASE = 0.1


@dataclass(frozen=True)
class PatternBound:
    """What rank patterns proved.

    Attributes
    ----------
    bound : int or None
        No plan (with the options kept, and cheaper than ``upper``) costs less; None: nothing.
    ended : str
        ``closed`` (no larger target can be refuted, up to the tolerance), ``limit`` (time ran
        out or the search was stopped) or ``none`` (the objective has no patterns).
    rounds : int
        Rounds of pricing.
    work : float
        Deterministic seconds of CP-SAT.
    source : BoundSource
    """

    bound: int | None
    ended: str
    rounds: int
    work: float = 0.0
    source: BoundSource = field(default=BoundSource("cpsat patterns", exact=True))


def worth_trying(instance: Instance, keep: np.ndarray) -> bool:
    """Whether few enough kinds of shard are left for patterns to say more than pooled places.

    A rule of thumb from benchmarks/rank-patterns: at most ten a rank, and some that may choose
    their rank.

    Parameters
    ----------
    keep : bool array [options]
    """
    if instance.objective == Objective.TOTAL:
        return False
    items = rank_items(instance, keep)
    free = ~np.isin(instance.block_where[items.block], [Where.EVERY_RANK, Where.LIST])
    return bool(free.any()) and items.number <= _FEW * instance.num_ranks


def pattern_bound(
    instance: Instance, lower: int, upper: int, limits: Limits, keep: np.ndarray | None = None
) -> PatternBound:
    """Largest target that rank patterns refute, by bisection.

    Worth its time where a few shards fill a rank and tables have few options left; with many
    small shards, or much choice, it proves no more than the linear relaxation (docs/bounds.md).

    Parameters
    ----------
    instance : Instance
        ``total`` has no busiest rank, hence no patterns. Under ``step_time`` the phases of a rank
        together stay below the target.
    lower, upper : int
        A bound known already, and the objective of a plan: targets between them are tried.
    limits : Limits
        Of the whole search; ``gap`` is not used.
    keep : bool array [options], optional
        Options still in the game; default :func:`formulations.bounds.own.usable`.

    Returns
    -------
    PatternBound
    """
    if instance.objective == Objective.TOTAL or not instance.num_tables:
        return PatternBound(None, "none", 0)
    search = _Search(instance, usable(instance) if keep is None else keep, limits)
    low, high, proved = lower, upper - 1, None
    target = low
    while low <= high:
        answer = search.refuted(target)
        if answer is None:
            return PatternBound(proved, "limit", search.rounds, search.work)
        if answer:
            low = proved = target + 1
        else:
            high = target - 1
        if high - low + 1 < _CLOSE * upper:
            break
        target = (low + high) // 2
    return PatternBound(proved, "closed", search.rounds, search.work)


class _Search:
    """Asks for one target after the other; patterns found are kept between them."""

    def __init__(self, instance: Instance, keep: np.ndarray, limits: Limits) -> None:
        self.rounds, self.work = 0, 0.0
        self._instance, self._keep, self._limits = instance, keep, limits
        self._end = time.monotonic() + (np.inf if limits.seconds is None else limits.seconds)
        self._items = rank_items(instance, keep)
        self._classes = rank_classes(instance)
        self._patterns: list[tuple[int, IntArray]] = []

    def refuted(self, target: int) -> bool | None:
        """True: no plan costs ``target`` or less. False: patterns cannot tell. None: limit."""
        singles, options = self._singles(target)
        tables = np.unique(self._instance.table_of[options])
        if len(tables) < self._instance.num_tables:
            return True
        master = PatternMaster(self._instance, self._items, self._classes, options)
        patterns = singles + [p for p in self._patterns if self._items.cost @ p[1] <= target]
        solved, best, centre = master.solve(patterns), 0.0, None
        pooled = master.pooled(target)
        while solved is not None and solved[0] > max(1.0, best) + _TOLERANCE:
            prices = pooled or solved[1]
            if centre is not None:
                prices = solved[1].towards(centre, _INERTIA)
            priced = self._price(target, prices, _EASE * (solved[0] - best) / solved[0])
            if priced is None:
                return None
            least, most = master.sides(prices, [p.most for p in priced])
            if least > most:
                return True
            if most > 0 and (centre is None or least / most > best):
                best, centre = least / most, prices
            found = [(k, p.held) for k, p in enumerate(priced)]
            self._patterns += found
            patterns += found
            solved = master.solve(patterns)
        return False

    def _singles(self, target: int) -> tuple[list[tuple[int, IntArray]], IntArray]:
        """A pattern for every item alone, and the options whose items all fit somewhere."""
        items, patterns = self._items, []
        seen = np.zeros(items.number, dtype=bool)
        for index, rank in enumerate(self._classes):
            fits = items.fitting(rank.capacity, target)
            seen |= fits
            for item in np.flatnonzero(fits).tolist():
                pattern = np.zeros(items.number, dtype=np.int64)
                pattern[item] = 1
                patterns.append((index, pattern))
        usable_here = self._keep.copy()
        usable_here[items.option[~seen]] = False
        return patterns, np.flatnonzero(usable_here)

    def _price(self, target: int, prices: Prices, gap: float) -> list[Priced] | None:
        """A pattern near the best of every class of ranks, and what any can pay; None: limit."""
        self.rounds += 1
        whole, found = prices.whole(), []
        for rank in self._classes:
            limits = self._left(gap)
            if limits is None:
                return None
            answer = best_pattern(self._items, rank, target, whole, limits)
            if answer is None:
                return None
            self.work += answer.work
            found.append(answer)
        return found

    def _left(self, gap: float) -> Limits | None:
        """What is left of the limits for one pricing; None: nothing."""
        given = self._limits
        seconds = self._end - time.monotonic()
        work = None if given.work is None else given.work - self.work
        if seconds <= 0 or (work is not None and work <= 0):
            return None
        if given.stop is not None and given.stop.is_set():
            return None
        return replace(given, seconds=None if seconds == np.inf else seconds, work=work, gap=gap)
