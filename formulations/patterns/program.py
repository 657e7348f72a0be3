"""The linear program over patterns inside a box of peaks, by column generation.

Its dual is solved: it weighs shards and memory, and maximises the sum of every table's lightest
option, floor included, less what the ranks can hold at most. A pattern is what one rank holds; it
counts with its own loads in the two sets of phases, but with at least the box's lower limits. Every
pricing is in integers, so its result is a bound and a row of a certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import IntArray
from formulations.patterns.found import Floats, Mask, Pattern, Priced, Shared, Solved
from formulations.patterns.merged import merged
from formulations.proof.peaks import FAR, Heights, Limits, Peaks, cells, highest, least_loads

#: Weights that a full rank may have, from coarse to fine; memory may limit them.
SCALES, _CELLS = (250, 1000, 3000, 10_000), 2**24
#: How many of these scales are tried at each level.
LEVELS, _TRIED = (0, 1, 2), (1, 2, 4)
#: A box is solved to this share of the plan's cost, and to that of its distance to it while there
#: are finer weights.
_NEAR, _PART = 1e-5, 0.05
#: Most rounds; patterns added in one pricing.
_ROUNDS, _ADDED = 60, 4
#: Share of the best weights so far in those tried next.
_CENTER = 0.5
#: Above every weight in a file.
_LARGEST = 2**53 - 1
#: Room for patterns heavier than all known ones.
_SPARE = 1.25


class Program:
    """The program of some options; boxes change only its limits.

    Parameters
    ----------
    peaks : Peaks
    keep : bool array [options]
        At least one of each table.
    shared : Shared
    """

    def __init__(self, peaks: Peaks, keep: Mask, shared: Shared) -> None:
        self._peaks, self._shared, self._merged = peaks, shared, merged(peaks, keep)
        instance, self._unit = peaks.instance, shared.unit
        floors = np.where(keep, peaks.floor, FAR)
        self._floors = int(np.minimum.reduceat(floors, instance.table_options[:-1]).sum())
        self._keep, self._kinds = keep, len(self._merged.first)
        self._kind_load = peaks.load[self._merged.first]
        self._kind_steps = peaks.steps[self._merged.first]
        self._capacity = [int(r.capacity.sum()) for r in instance.resources]
        self._patterns: dict[Pattern, int] = {}
        self._numbers = np.zeros((256, self._kinds))  # shards of each kind in every pattern
        self._seen = 0
        self._load, self._steps = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._lp = self._built()
        self._add(())
        for entry in self._merged.first.tolist():
            self._add(((entry, 1),))

    @property
    def room(self) -> int:
        """What is left for both heights of a better plan."""
        return self._shared.upper - 1 - self._floors

    def _built(self) -> Any:
        """The program without patterns: weights, prices of tables, the ranks' most, memory."""
        import highspy

        self._infinity = highspy.kHighsInf
        lp, merged = highspy.Highs(), self._merged
        lp.setOptionValue("output_flag", False)
        ranks = self._peaks.instance.num_ranks
        # where a box has no plan, prices grow without limit; the plan's cost is more than enough
        enough = ranks * self._shared.upper / self._unit
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

    def _add(self, shards: Pattern) -> bool:
        """Add a pattern by entries and their numbers; whether it is new. One with shards of an
        option that is not kept is ignored."""
        kinds: dict[int, int] = {}
        for entry, n in shards:
            kind = int(self._merged.kind[entry])
            kinds[kind] = kinds.get(kind, 0) + n
        pattern = tuple(sorted(kinds.items()))
        if pattern in self._patterns or -1 in kinds:
            return False
        self._patterns[pattern] = len(self._patterns)
        load = sum(int(self._kind_load[kind]) * n for kind, n in pattern)
        steps = sum(int(self._kind_steps[kind]) * n for kind, n in pattern)
        if len(self._load) == len(self._numbers):
            self._numbers = np.concatenate([self._numbers, np.zeros_like(self._numbers)])
        for kind, n in pattern:
            self._numbers[len(self._load), kind] = n
        self._load, self._steps = np.append(self._load, load), np.append(self._steps, steps)
        terms = {kind: float(n) for kind, n in pattern} | {self._most_at: -1.0}
        limit = self._pays(self._load[-1:], self._steps[-1:])[0] if self._patterns else 0.0
        self._lp.addRow(-self._infinity, limit, len(terms), *_columns(terms))
        return True

    #: The box at hand.
    _box = Heights(0, 0, 0, 0, 0)

    def _pays(self, load: IntArray, steps: IntArray) -> Floats:
        """What patterns pay for both heights in the box; inf where they do not fit in it."""
        box, second = self._box, steps * self._peaks.step
        both = np.maximum(load, box.low) + np.maximum(second, box.base)
        fits = (load <= box.high) & (second <= box.top) & (both <= box.room)
        return np.where(fits, both / self._unit, self._infinity)

    def solve(
        self, box: Heights, known: Priced | None, level: int, over: Callable[[], bool]
    ) -> Solved:
        """The best bound in a box.

        Parameters
        ----------
        box : Heights
        known : Priced or None
            Weights of a larger box.
        level : int
            How fine the weights may become, of :data:`LEVELS`; coarse ones are enough to split.
        over : callable
            Returns whether to stop, which is heard after the first round.
        """
        self._enter(box)
        best = None if known is None else self._again(known)
        center: tuple[Floats, Floats] | None = None
        scale, finished = 0, False
        scales, part = self._scales(box, level), 0 if level == LEVELS[-1] else _PART
        for _ in range(_ROUNDS):
            self._lp.run()
            value = np.asarray(self._lp.getSolution().col_value)
            high = -self._lp.getInfo().objective_function_value * self._unit
            spread = self._spread()
            scaled = self._shared.times * self._unit
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
            upper = self._shared.upper
            near = max(_NEAR * upper, part * (upper - best.bound))
            done = high - best.bound < near or best.bound >= upper
            finished = done or scale == len(scales)
            if finished or over():
                break
        assert best is not None
        return Solved(best, *spread, finished)

    def _scales(self, box: Heights, level: int) -> list[int]:
        """The scales for which the dynamic program has the memory; at least the first."""
        rows = (box.top // self._peaks.step + 1) * (self._peaks.instance.num_tables + 2)
        tried = SCALES[: _TRIED[level]]
        return [s for s in tried if _SPARE * s * rows <= _CELLS] or [*SCALES[:1]]

    def _enter(self, box: Heights) -> None:
        """Let patterns pay what they do in this box, and drop those that do not fit in it."""
        self._box = box
        for pattern in list(self._shared.patterns)[self._seen :]:
            self._add(pattern)
        self._seen = len(self._shared.patterns)
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
        steps, box = self._kind_steps * self._peaks.step, self._box
        return (self._kind_load > box.high) | (steps > box.top)

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
        shares = np.zeros(len(self._keep))
        for amount, (group, _), options in zip(
            dual[:rows], self._merged.choices, self._merged.options, strict=True
        ):
            shares[options] = amount / self._merged.times[group]
        return found[0], found[1], shares

    def _again(self, known: Priced) -> Priced:
        """Known weights, in this box."""
        weight = known.weight[self._merged.first].tolist()
        return self._judged(weight, known.each, known.most, known.memory)[0]

    def fixed(self, priced: Priced) -> Mask:
        """Options that weights derived in a box do not exclude there, bool array [options]."""
        merged, times = self._merged, self._shared.times
        weight = priced.weight[merged.first].tolist()
        prices, least = self._choice_prices(weight, priced.each, priced.memory)
        total = sum(t * price for t, price in zip(merged.times, least, strict=True))
        keep = self._keep.copy()
        for price, (group, _), options in zip(prices, merged.choices, merged.options, strict=True):
            forced = total - least[group] + price
            if forced > priced.limit + times * (self._shared.upper - 1):
                keep[options] = False
        return keep

    def _choice_prices(
        self, weight: list[int], each: int, memory: list[int]
    ) -> tuple[list[int], list[int]]:
        """The price of every choice, and the least of each class."""
        least, prices = [2**200] * len(self._merged.times), []
        for group, choice in self._merged.choices:
            price = each * sum(weight[k] * n for k, n in choice.shards)
            price += self._shared.times * choice.floor
            price += sum(m * u for m, u in zip(memory, choice.use, strict=True))
            prices.append(price)
            least[group] = min(least[group], price)
        return prices, least

    def _price(self, weight: Floats, memory: Floats, scale: int) -> tuple[Priced, bool]:
        """Round weights to integers, derive their bound, and add the heaviest patterns."""
        capacity = np.maximum(1, self._capacity)
        price = [int(m) for m in np.floor(np.maximum(0.0, memory) / capacity)]
        heavy = max([float(weight.max(initial=1.0)), self._heaviest(weight)])
        patterns = None
        while patterns is None:
            each = max(1, int(np.ceil(heavy / scale)))
            whole = np.maximum(0, np.rint(weight / each)).astype(np.int64)  # a solver may leave -ε
            whole[self._outside()] = 0
            priced, patterns = self._judged(whole.tolist(), each, int(_SPARE * scale), price)
            heavy *= 2 * _SPARE
        added = [self._add(pattern) for pattern in patterns]
        self._shared.patterns |= dict.fromkeys(patterns)
        return priced, any(added)

    def _heaviest(self, weight: Floats) -> float:
        """The largest weight of the known patterns that fit in the box."""
        fits = np.isfinite(self._pays(self._load, self._steps))
        return float((self._numbers[: len(fits)] @ weight)[fits].max(initial=0.0))

    def _judged(
        self, weight: list[int], each: int, most: int, memory: list[int]
    ) -> tuple[Priced, list[Pattern] | None]:
        """The bound of integer weights, and heavy patterns; a bound of 0, and no patterns, where a
        rank may hold more than ``most``."""
        peaks, kinds, box = self._peaks, self._merged.kind, self._box
        full = self._priced_out(weight, each, most, memory)
        by_entry = np.asarray([*full, 0], dtype=np.int64)[kinds]  # -1 is the last
        limits = Limits(box.high, box.top // peaks.step, most)
        tables = peaks.portions(by_entry, self._keep, limits)
        needed = cells(len(tables), limits)
        if needed > len(self._shared.space):
            self._shared.space = np.empty(needed, dtype=np.int64)
        least = least_loads(tables, limits, self._shared.space)
        steps = (limits.steps + 1) * (most // 10 + 1) * sum(map(len, tables))
        if int(least.load[:, -1].min()) <= box.high:
            return Priced(by_entry, each, most, memory, 0, 0, steps), None
        ranks = each * peaks.instance.num_ranks
        most = int(np.flatnonzero(least.load.min(axis=0) <= box.high)[-1])
        times = self._shared.times
        best, _, _ = highest(least.load, box, peaks.step, ranks, times)
        _, left = self._choice_prices(full, each, memory)
        total = sum(t * price for t, price in zip(self._merged.times, left, strict=True))
        limit = best + sum(m * c for m, c in zip(memory, self._capacity, strict=True))
        bound = -((limit - total) // times)
        priced = Priced(by_entry, each, most, memory, limit, bound, steps)
        return priced, self._heavy(least, ranks)

    def _priced_out(self, weight: list[int], each: int, most: int, memory: list[int]) -> list[int]:
        """Weights with those of shards that do not fit in the box so large that no option with one
        is the lightest."""
        held = sum(m * c for m, c in zip(memory, self._capacity, strict=True))
        ranks = self._peaks.instance.num_ranks
        large = 2 * self._shared.upper * self._shared.times + held
        large = min(_LARGEST, large // each + ranks * (most + 2))
        outside = self._outside().tolist()
        return [large if out else w for w, out in zip(weight, outside, strict=True)]

    def _heavy(self, least: Any, ranks: int) -> list[Pattern]:
        """The heaviest pattern for each of the most promising numbers of steps."""
        box, step = self._box, self._peaks.step
        found = []
        for steps in range(len(least.load)):
            row = least.load[steps : steps + 1]
            inside = Heights(box.low, box.high, max(box.base, steps * step), box.top, box.room)
            value, _, weight = highest(row, inside, step, ranks, self._shared.times)
            found.append((value, steps, weight))
        best = sorted(found, reverse=True)[:_ADDED]
        return [tuple(sorted(least.pattern(steps, w).items())) for _, steps, w in best]


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
