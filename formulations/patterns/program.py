"""The linear program over patterns inside a box of peaks, by column generation.

Its dual is solved: it weighs shards and memory, and maximises the sum of every table's lightest
option, floor included, less what the ranks can hold at most. A pattern is what one rank holds; it
counts with its own loads in the two sets of phases, but with at least the box's lower limits. Every
pricing is in integers, so its result is a bound and a row of a certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import IntArray
from formulations.patterns.merged import Merged
from formulations.proof.peaks import Heights, Limits, Peaks, cells, highest, least_loads

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pattern = tuple[tuple[int, int], ...]
#: Bits of the largest number in the arithmetic, and most bits of the multiplier of floors and
#: heights, with which prices of weights and memory are integers.
_BITS, _MOST_BITS = 58, 20
#: Weights that a full rank may have, from coarse to fine; memory may limit them.
SCALES, _CELLS = (250, 1000, 3000), 2**24
#: A box is solved to this share of the plan's cost, or to that of its distance to it.
_NEAR, _PART = 1e-4, 0.05
#: Most rounds; patterns added in one pricing.
_ROUNDS, _ADDED = 60, 4
#: Share of the best weights so far in those tried next.
_CENTER = 0.5
#: Room for patterns heavier than all known ones.
_SPARE = 1.25


@dataclass(frozen=True, eq=False)
class Priced:
    """Weights in integers and the bound that they prove in a box.

    Attributes
    ----------
    weight : list of int
        By kind of shard.
    each : int
        Price of a weight of 1, where floors and heights have :attr:`Program.times`.
    most : int
        The largest weight of a rank that is told apart.
    memory : list of int
        Multiplier of each resource's capacities.
    bound : int
        No plan in the box costs less.
    steps : int
        About the checker's steps.
    """

    weight: list[int]
    each: int
    most: int
    memory: list[int]
    bound: int
    steps: int


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of the program in a box.

    Attributes
    ----------
    priced : Priced
    first, second : tuple of (float, float)
        Mean of the heights that the program's patterns pay for, and how far they lie around it: a
        box in which all pay the same cannot be improved by splitting it there.
    shares : float array [choices]
    finished : bool
        Whether more time would not have raised the bound.
    """

    priced: Priced
    first: tuple[float, float]
    second: tuple[float, float]
    shares: Floats
    finished: bool


class Program:
    """The program of some options; boxes change only its limits.

    Parameters
    ----------
    peaks : Peaks
    merged : Merged
    keep : bool array [options]
    upper : int
        The cost of a plan; bounds of it or more need not be improved.
    """

    def __init__(self, peaks: Peaks, merged: Merged, keep: Mask, upper: int) -> None:
        self._peaks, self._merged, self._upper = peaks, merged, upper
        instance = peaks.instance
        floors = np.where(keep, peaks.floor, np.iinfo(np.int64).max)
        least = np.minimum.reduceat(floors, instance.table_options[:-1])
        self.room = upper - 1 - int(least.sum())
        self._keep, self._kinds = keep, len(merged.load)
        self._capacity = [int(r.capacity.sum()) for r in instance.resources]
        self._unit = max(1.0, upper / 1000)
        self.times = 2 ** min(_MOST_BITS, max(0, _BITS - upper.bit_length()))
        self._patterns: dict[Pattern, int] = {}
        self._load, self._steps = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._lp = self._built()
        self._add(())
        for entry in np.flatnonzero(merged.kind >= 0).tolist():
            self._add(((int(merged.kind[entry]), 1),))

    def _built(self) -> Any:
        """The program without patterns: weights, prices of tables, the ranks' most, memory."""
        import highspy

        self._infinity = highspy.kHighsInf
        lp, merged = highspy.Highs(), self._merged
        lp.setOptionValue("output_flag", False)
        ranks = self._peaks.instance.num_ranks
        # where a box has no plan, prices grow without limit; the plan's cost is more than enough
        enough = ranks * self._upper / self._unit
        for _ in range(self._kinds):
            lp.addVar(0.0, enough)
        classes = len(merged.times)
        for times in merged.times:
            lp.addVar(-self._infinity, self._infinity)
            lp.changeColCost(lp.getNumCol() - 1, -float(times))
        self._most_at = self._kinds + classes
        lp.addVar(-self._infinity, self._infinity)
        lp.changeColCost(self._most_at, 1.0)
        for _ in self._capacity:
            lp.addVar(0.0, enough)
            lp.changeColCost(lp.getNumCol() - 1, 1.0)
        for group, choice in merged.choices:
            terms = {self._kinds + group: 1.0}
            for kind, number in choice.shards:
                terms[kind] = terms.get(kind, 0.0) - number / ranks
            for i, use in enumerate(choice.use):
                if use:
                    terms[self._most_at + 1 + i] = -use / max(1, self._capacity[i])
            lp.addRow(-self._infinity, choice.floor / self._unit, len(terms), *_columns(terms))
        return lp

    def _add(self, pattern: Pattern) -> bool:
        """Add a pattern by kinds of shards and their numbers; whether it is new."""
        if pattern in self._patterns:
            return False
        self._patterns[pattern] = len(self._patterns)
        load = sum(int(self._merged.load[kind]) * n for kind, n in pattern)
        steps = sum(int(self._merged.steps[kind]) * n for kind, n in pattern)
        self._load, self._steps = np.append(self._load, load), np.append(self._steps, steps)
        terms = {kind: float(n) for kind, n in pattern} | {self._most_at: -1.0}
        limit = self._pays(self._load[-1:], self._steps[-1:])[0] if self._patterns else 0.0
        self._lp.addRow(-self._infinity, limit, len(terms), *_columns(terms))
        return True

    #: The box at hand.
    _box = Heights(0, 0, 0, 0, 0)
    #: Memory of the dynamic program.
    _space = np.empty(0, dtype=np.int64)

    def _pays(self, load: IntArray, steps: IntArray) -> Floats:
        """What patterns pay for both heights in the box; inf where they do not fit in it."""
        box, second = self._box, steps * self._peaks.step
        both = np.maximum(load, box.low) + np.maximum(second, box.base)
        fits = (load <= box.high) & (second <= box.top) & (both <= box.room)
        return np.where(fits, both / self._unit, self._infinity)

    def solve(
        self, box: Heights, known: Priced | None, fine: bool, over: Callable[[], bool]
    ) -> Solved:
        """The best bound in a box.

        Parameters
        ----------
        box : Heights
        known : Priced or None
            Weights of a larger box.
        fine : bool
            Whether weights become fine; coarse ones are enough to split a large box.
        over : callable
            Returns whether to stop, which is heard after the first round.
        """
        self._enter(box)
        best = None if known is None else self._again(known)
        center: tuple[Floats, Floats] | None = None
        scale, finished = 0, False
        scales = SCALES if fine else SCALES[:1]
        for _ in range(_ROUNDS):
            self._lp.run()
            value = np.asarray(self._lp.getSolution().col_value)
            high = -self._lp.getInfo().objective_function_value * self._unit
            spread = self._spread()
            scaled = self.times * self._unit
            weight = value[: self._kinds] * scaled / self._peaks.instance.num_ranks
            memory = value[self._most_at + 1 :] * scaled
            added = False
            for mixed in _mixed(center, (weight, memory)):
                priced, news = self._price(*mixed, scales[scale])
                added |= news
                if best is None or priced.bound > best.bound:
                    best, center = priced, mixed
            assert best is not None
            scale += not added
            near = max(_NEAR * self._upper, 0 if fine else _PART * (self._upper - best.bound))
            done = high - best.bound < near or best.bound >= self._upper
            finished = done or scale == len(scales)
            if finished or over():
                break
        assert best is not None
        return Solved(best, *spread, finished)

    def _enter(self, box: Heights) -> None:
        """Let patterns pay what they do in this box, and drop those that do not fit in it."""
        self._box = box
        rows = len(self._merged.choices)
        limits = self._pays(self._load, self._steps)
        index = np.arange(rows, rows + len(limits), dtype=np.int32)
        low = np.full(len(limits), -self._infinity)
        self._lp.changeRowsBounds(len(index), index, low, limits)
        outside = self._outside()
        for row, (_, choice) in enumerate(self._merged.choices):
            shut = any(outside[kind] for kind, _ in choice.shards)
            limit = self._infinity if shut else choice.floor / self._unit
            self._lp.changeRowBounds(row, -self._infinity, limit)

    def _outside(self) -> Mask:
        """Kinds of shards that do not fit in the box."""
        merged, box = self._merged, self._box
        return (merged.load > box.high) | (merged.steps * self._peaks.step > box.top)

    def _spread(self) -> tuple[tuple[float, float], tuple[float, float], Floats]:
        """Heights that the solution's patterns pay for, and its shares of choices."""
        dual = np.abs(np.asarray(self._lp.getSolution().row_dual))
        rows, box = len(self._merged.choices), self._box
        share = dual[rows:] / max(1e-12, dual[rows:].sum())
        found = []
        for height, low in ((self._load, box.low), (self._steps * self._peaks.step, box.base)):
            pays = np.maximum(height, low)
            mean = float(share @ pays)
            found.append((mean, float(share @ np.abs(pays - mean))))
        return found[0], found[1], dual[:rows]

    def _again(self, known: Priced) -> Priced:
        """Known weights, in this box."""
        return self._judged(known.weight, known.each, known.most, known.memory)[0]

    def _price(self, weight: Floats, memory: Floats, scale: int) -> tuple[Priced, bool]:
        """Round weights to integers, derive their bound, and add the heaviest patterns."""
        capacity = np.maximum(1, self._capacity)
        price = [int(m) for m in np.floor(np.maximum(0.0, memory) / capacity)]
        heavy = max([float(weight.max(initial=1.0)), self._heaviest(weight)])
        patterns = None
        while patterns is None:
            each = max(1, int(np.ceil(heavy / scale)))
            whole = np.rint(weight / each).astype(np.int64)
            whole[self._outside()] = 0
            priced, patterns = self._judged(whole.tolist(), each, int(_SPARE * scale), price)
            heavy *= 2 * _SPARE
        added = [self._add(pattern) for pattern in patterns]
        return priced, any(added)

    def _heaviest(self, weight: Floats) -> float:
        """The largest weight of the known patterns that fit in the box."""
        fits = np.isfinite(self._pays(self._load, self._steps))
        sums = [sum(weight[k] * n for k, n in p) for p, i in self._patterns.items() if fits[i]]
        return float(max(sums, default=0.0))

    def _judged(
        self, weight: list[int], each: int, most: int, memory: list[int]
    ) -> tuple[Priced, list[Pattern] | None]:
        """The bound of integer weights, and heavy patterns; a bound of 0, and no patterns, where a
        rank may hold more than ``most``."""
        peaks, merged, box = self._peaks, self._merged, self._box
        full = self._priced_out(weight, each, most, memory)
        by_entry = np.where(merged.kind >= 0, np.asarray([*full, 0])[merged.kind], 0)
        limits = Limits(box.high, box.top // peaks.step, most)
        tables = peaks.portions(by_entry, self._keep, limits)
        needed = cells(len(tables), limits)
        if needed > len(self._space):
            self._space = np.empty(needed, dtype=np.int64)
        least = least_loads(tables, limits, self._space)
        steps = (limits.steps + 1) * (most // 10 + 1) * sum(map(len, tables))
        if int(least.load[:, -1].min()) <= box.high:
            return Priced(full, each, most, memory, 0, steps), None
        ranks = each * peaks.instance.num_ranks
        most = int(np.flatnonzero(least.load.min(axis=0) <= box.high)[-1])
        best, _, _ = highest(least.load, box, peaks.step, ranks, self.times)
        left = [2**80] * len(merged.times)
        for group, choice in merged.choices:
            price = self.times * choice.floor + each * sum(full[k] * n for k, n in choice.shards)
            price += sum(m * u for m, u in zip(memory, choice.use, strict=True))
            left[group] = min(left[group], price)
        total = sum(t * price for t, price in zip(merged.times, left, strict=True))
        limit = best + sum(m * c for m, c in zip(memory, self._capacity, strict=True))
        bound = -((limit - total) // self.times)
        return Priced(full, each, most, memory, bound, steps), self._heavy(least, ranks)

    def _priced_out(self, weight: list[int], each: int, most: int, memory: list[int]) -> list[int]:
        """Weights with those of shards that do not fit in the box so large that no option with one
        is the lightest."""
        held = sum(m * c for m, c in zip(memory, self._capacity, strict=True))
        ranks = self._peaks.instance.num_ranks
        large = (2 * self._upper * self.times + held) // each + ranks * (most + 2)
        outside = self._outside().tolist()
        return [large if out else w for w, out in zip(weight, outside, strict=True)]

    def _heavy(self, least: Any, ranks: int) -> list[Pattern]:
        """The heaviest pattern for each of the most promising numbers of steps."""
        box, step = self._box, self._peaks.step
        found = []
        for steps in range(len(least.load)):
            row = least.load[steps : steps + 1]
            inside = Heights(box.low, box.high, max(box.base, steps * step), box.top, box.room)
            value, _, weight = highest(row, inside, step, ranks, self.times)
            found.append((value, steps, weight))
        patterns = []
        for _, steps, weight in sorted(found, reverse=True)[:_ADDED]:
            kinds: dict[int, int] = {}
            for entry, copies in least.pattern(steps, weight).items():
                kind = int(self._merged.kind[entry])
                kinds[kind] = kinds.get(kind, 0) + copies
            patterns.append(tuple(sorted(kinds.items())))
        return patterns


def _columns(terms: dict[int, float]) -> tuple[NDArray[np.int32], Floats]:
    index = np.fromiter(terms.keys(), dtype=np.int32, count=len(terms))
    return index, np.fromiter(terms.values(), dtype=np.float64, count=len(terms))


def _mixed(
    center: tuple[Floats, Floats] | None, found: tuple[Floats, Floats]
) -> list[tuple[Floats, Floats]]:
    """Weights to price: near the best so far, because those of the program jump, and its own."""
    if center is None:
        return [found]
    (a, b), (c, d) = center, found
    near = _CENTER * a + (1 - _CENTER) * c, _CENTER * b + (1 - _CENTER) * d
    return [near, found]
