"""The linear program over patterns inside a box of peaks, by column generation.

Its dual is solved: it prices shards, loads and memory, and maximises the sum of every table's
lightest option, floor included, less what the ranks can hold at most. A pattern is what one rank
holds; it counts with its own loads in the two sets of phases, but with at least the box's lower
limits. Every pricing is in integers, so its result is a bound and a row of a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import mul

import numpy as np

from formulations.instance import IntArray
from formulations.patterns.dual import Choices, Dual, Weights
from formulations.patterns.found import Floats, Mask, Pattern, Priced, Prices, Shared, Solved
from formulations.patterns.merged import merged
from formulations.patterns.rounding import Known
from formulations.proof.peaks import Heights, Peaks, raised, worths
from formulations.proof.portions import FAR, Limits, cells, least_loads

#: Weights that a full rank may have, from coarse to fine; memory may limit them. With so many
#: cells of the dynamic program, it takes longer than to round weights well.
SCALES, _CELLS, _MANY_CELLS = (250, 1000, 3000, 10_000), 2**24, 2**20
#: Where the checker would take long for a row, its weights are coarser, down to about this.
_COARSEST = 50
#: How many of these scales are tried at each level.
LEVELS, _TRIED = (0, 1, 2), (1, 2, 4)
#: A box is solved to this share of the plan's cost, and to that of its distance to it while there
#: are finer weights.
_NEAR, _PART = 1e-5, 0.05
#: Most rounds; patterns added in one pricing.
_ROUNDS, _ADDED, _MANY = 60, 4, 20
#: Most steps of the checker for one row, and those for each option.
MOST_STEPS, _PER_OPTION = 4_000_000, 3
#: Bits of the multiplier of floors and heights, with which prices of loads are integers.
_MOST_BITS = 26
#: Above every weight in a file.
_LARGEST = 2**53 - 1
#: The most that a load may cost, where it costs something.
_DEAR = 4.0
#: First limit of weights, in thousandths of the plan's cost, and by how much it is raised.
_FIRST, _FURTHER = 20.0, 20
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
        instance, merged_ = peaks.instance, self._merged
        self._keep, self._kinds = keep, len(merged_.first)
        self._leads = keep & (merged_.tables > 0)[instance.table_of]
        own = [values[merged_.first] for values in (peaks.load, peaks.second_load, peaks.steps)]
        self._kind_loads, self._choices = np.stack(own, axis=1), Choices(merged_)
        self._capacity = [int(r.capacity.sum()) for r in instance.resources]
        self._patterns: set[Pattern] = set()
        # shards of each kind in every pattern
        self._numbers = np.zeros((0, self._kinds), dtype=np.int64)
        self._seen = 0
        self._load, self._steps = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._add([(), *(((entry, 1),) for entry in self._merged.first.tolist())])

    @property
    def alike(self) -> IntArray:
        """How many tables are like an option's own, int64 array [options]."""
        times = np.zeros(len(self._keep), dtype=np.int64)
        for (group, _), options in zip(self._merged.choices, self._merged.options, strict=True):
            times[options] = self._merged.times[group]
        return times

    def _add(self, patterns: Iterable[Pattern]) -> bool:
        """Add patterns by entries and their numbers; whether one is new. One with shards of an
        option that is not kept is ignored."""
        rows = []
        for shards in patterns:
            kinds: dict[int, int] = {}
            for entry, n in shards:
                kind = int(self._merged.kind[entry])
                kinds[kind] = kinds.get(kind, 0) + n
            pattern = tuple(sorted(kinds.items()))
            if pattern in self._patterns or -1 in kinds:
                continue
            self._patterns.add(pattern)
            row = np.zeros(self._kinds)
            row[list(kinds)] = list(kinds.values())
            rows.append(row)
        if rows:
            number = np.asarray(rows).astype(np.int64)
            self._numbers = np.concatenate([self._numbers, number])
            self._load = np.append(self._load, number @ self._kind_loads[:, 0])
            self._steps = np.append(self._steps, number @ self._kind_loads[:, 2])
        return bool(rows)

    #: The box at hand.
    _box = Heights(0, 0, 0, 0, 0)
    #: Patterns in its program and their heights.
    _rows: dict[tuple[int, ...], None]

    def _fits(self) -> Mask:
        """The patterns that fit in the box, bool array [patterns]."""
        box, second = self._box, self._steps * self._peaks.step
        both = np.maximum(self._load, box.low) + np.maximum(second, box.base)
        return (self._load <= box.high) & (second <= box.top) & (both <= box.room)

    def _heights(
        self, first_gain: float, second_gain: float, stepped: float
    ) -> tuple[IntArray, IntArray]:
        """Patterns that fit in the box, and the heights at which they are worth the most by what a
        unit of each adds: both, and the second in whole steps, int64 array [patterns, 3]."""
        box, step = self._box, self._peaks.step
        # the second height ends at a whole step, unless what is above that pays as well
        top = box.top if second_gain > 0 else max(box.base, box.top // step * step)
        gain = first_gain, second_gain + stepped
        at = np.flatnonzero(self._fits())
        first = np.maximum(self._load[at], box.low)
        second = np.maximum(self._steps[at] * step, box.base)
        first, second = raised(first, second, box, top, gain)
        return at, np.stack([first, second, second // step * step], axis=1)

    def _violated(self, found: Weights, most: float) -> bool:
        """Add the patterns, each with the heights at which it is worth the most, that are worth
        more than a number; whether there are any."""
        first, second, stepped = found.loads.tolist()
        at, heights = self._heights(first - 1, second - 1, stepped)
        worth = (self._numbers[at] @ found.weight) + heights @ (
            (found.loads - [1, 1, 0]) / self._shared.unit
        )
        new = []
        for i in np.argsort(-worth)[:_MANY].tolist():
            key = (int(at[i]), *heights[i, :2].tolist())
            if worth[i] > most and key not in self._rows:
                self._rows[key] = None
                new.append(i)
        if new:
            self._dual.add(self._numbers[at[new]], heights[new])
        return bool(new)

    def _run(self) -> tuple[Weights, float]:
        """Solve the program over all patterns known; what it pays, and its value."""
        while True:
            found, most, value = self._dual.run()
            if not self._violated(found, most + _NEAR / 4 * 1000):
                return found, value

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
        scale, finished = 0, False
        limit = _FIRST if self._shared.fluid else self._dual.enough
        scales, part = self._scales(level), 0 if level == LEVELS[-1] else _PART
        best, center = self._without_weights()
        if known is not None and (again := self._again(known)).bound > best.bound:
            best, center = again, self._weights(known)
        self._dual.limit(limit)
        for _ in range(_ROUNDS):
            found, high = self._run()
            added = False
            for mixed in [center.near(found), found]:
                priced, news = self._price(mixed, scales[scale])
                added |= news
                if priced.bound > best.bound:
                    best, center = priced, mixed
            upper = self._shared.upper
            near = max(_NEAR * upper, part * (upper - best.bound))
            done = high - best.bound < near
            if (
                (done or not added)
                and limit < self._dual.enough
                and found.weight.max(initial=0.0) >= 0.99 * limit
            ):
                limit *= _FURTHER
                self._dual.limit(limit)
                done = False
            else:
                scale += not added
            finished = done or best.bound >= upper or scale == len(scales)
            if finished or over():
                break
        return Solved(best, *self._spread(), finished)

    def _without_weights(self) -> tuple[Priced, Weights]:
        """The bound of the best prices of loads and memory alone, and these."""
        self._dual.limit(0.0)
        found, _ = self._run()
        return self._price(found, SCALES[0])[0], found

    def _weights(self, priced: Priced) -> Weights:
        """Weights in integers, in the units of the program."""
        prices, ranks = priced.prices, self._peaks.instance.num_ranks
        weight = priced.weight[self._merged.first] * (prices.each * ranks / self._shared.unit)
        loads = np.asarray(prices.loads) * (np.asarray([1, 1, 1 / self._peaks.step]) * ranks)
        memory = np.asarray(prices.memory) * np.asarray(self._capacity) / self._shared.unit
        limit = self._dual.enough * prices.times
        return Weights(*(np.minimum(x, limit) / prices.times for x in (weight, loads, memory)))

    def _scales(self, level: int) -> list[int]:
        """The scales for which the dynamic program has the memory; at least the first."""
        tried = SCALES[: _TRIED[level]]
        return [s for s in tried if self._cells(s) <= _CELLS] or [*SCALES[:1]]

    def _passes(self, scale: int) -> int:
        """How often weights are rounded again: more often where their bound takes longer."""
        return (4 if self._cells(scale) > _MANY_CELLS else 1) * self._shared.fluid

    def _cells(self, scale: int) -> float:
        """About the cells of the dynamic program."""
        times = self._merged.tables[
            self._peaks.instance.table_of[self._peaks.option[self._merged.first]]
        ]
        lists = min(self._peaks.instance.num_tables, int(np.minimum(times, 6).sum()))
        return _SPARE * scale * (self._box.top // self._peaks.step + 1) * (lists + 2)

    def _enter(self, box: Heights) -> None:
        """A program for this box, with the patterns that fit in it."""
        self._box = box
        self._add(list(self._shared.patterns)[self._seen :])
        self._seen = len(self._shared.patterns)
        ranks = self._peaks.instance.num_ranks
        self._dual, self._rows = Dual(
            self._choices, self._kind_loads * np.asarray([1, 1, self._peaks.step]), self._capacity,
            self._outside(), ranks, self._shared.unit, _DEAR * self._shared.fluid,
        ), {}  # fmt: skip
        self._violated(Weights(np.zeros(self._kinds), np.zeros(3), np.zeros(0)), -np.inf)

    def _outside(self) -> Mask:
        """Kinds of shards that do not fit in the box."""
        (load, _, steps), box = self._kind_loads.T, self._box
        return np.asarray((load > box.high) | (steps * self._peaks.step > box.top))

    def _spread(self) -> tuple[tuple[float, float], tuple[float, float], Floats]:
        """Heights that the solution's patterns pay for, and its shares of choices."""
        amounts, share = self._dual.shares()
        found = []
        for pays in np.asarray(list(self._rows), dtype=float)[:, 1:].T:
            mean = float(share @ pays)
            found.append((mean, float(share @ np.abs(pays - mean))))
        shares = np.zeros(len(self._keep))
        for amount, (group, _), options in zip(
            amounts, self._merged.choices, self._merged.options, strict=True
        ):
            shares[options] = amount / self._merged.times[group]
        return found[0], found[1], shares

    def whole(self, shares: Floats, able: Mask) -> IntArray | None:
        """An option for each table, among some, so that those of a class take options about as
        often as their shares say; None where a table is left without one."""
        merged, of = self._merged, self._peaks.instance.table_of
        found = np.full(self._peaks.instance.num_tables, -1)
        often = [shares[options[0]] for options in merged.options]
        filled, taken = np.zeros(len(merged.times)), [0] * len(merged.times)
        for at in np.argsort(-np.asarray(often), kind="stable").tolist():
            group, options = merged.choices[at][0], merged.options[at]
            options = options[able[options]]
            filled[group] += often[at] * merged.times[group]
            tables, first = np.unique(of[options], return_index=True)
            free = np.flatnonzero(found[tables] < 0)[: round(filled[group]) - taken[group]]
            found[tables[free]] = options[first[free]]
            taken[group] += len(free)
        return None if (found < 0).any() else found

    def _again(self, known: Priced) -> Priced:
        """Known weights, in this box."""
        return self._judged(known.weight[self._merged.first].tolist(), known.prices, known.most)[0]

    def fixed(self, priced: Priced) -> Mask:
        """Options that weights derived in a box do not exclude there, bool array [options]."""
        merged = self._merged
        prices, least = self._choice_prices(priced.weight[merged.first].tolist(), priced.prices)
        total = sum(t * price for t, price in zip(merged.times, least, strict=True))
        limit = priced.limit + priced.prices.times * (self._shared.upper - 1)
        keep = self._keep.copy()
        for price, (group, _), options in zip(prices, merged.choices, merged.options, strict=True):
            if total - least[group] + price > limit:
                keep[options] = False
        return keep

    def _choice_prices(self, weight: list[int], prices: Prices) -> tuple[list[int], list[int]]:
        """The price of every choice, and the least of each class."""
        rows = zip(weight, self._kind_loads.tolist(), strict=True)
        one = [prices.each * w + sum(map(mul, prices.loads, loads)) for w, loads in rows]
        least, found = [2**200] * len(self._merged.times), []
        for group, choice in self._merged.choices:
            price = sum(one[k] * n for k, n in choice.shards) + prices.times * choice.floor
            price += sum(map(mul, prices.memory, choice.use))
            found.append(price)
            least[group] = min(least[group], price)
        return found, least

    def _price(self, found: Weights, scale: int) -> tuple[Priced, bool]:
        """Round weights to integers, derive their bound, and add the heaviest patterns."""
        capacity, ranks = np.maximum(1, self._capacity), self._peaks.instance.num_ranks
        heavy = max(float(found.weight.max(initial=0.0)), self._heaviest(found.weight))
        added = held = False
        while not held and not added:
            # all sums stay below FAR
            bits = int(np.log2(FAR / 2 / self._shared.unit / (1000 * (1 + _DEAR) + _SPARE * heavy)))
            times = 2 ** max(0, min(_MOST_BITS, bits))
            one = times * self._shared.unit
            memory = [int(m) for m in np.floor(found.memory * one / capacity)]
            first, second, stepped = (int(p * times / ranks) for p in found.loads)
            each = max(1, int(np.ceil(heavy * one / ranks / scale)))
            prices = Prices(times, (first, second, stepped * self._peaks.step), each, memory)
            weight = self._whole(found.weight * one / ranks / each, prices, self._passes(scale))
            priced, patterns, held = self._judged(weight, prices, int(_SPARE * scale))
            if priced.steps > MOST_STEPS and scale > _COARSEST:
                scale, held = scale // 4, False
                continue
            heavy *= 2 * _SPARE
            self._shared.patterns |= dict.fromkeys(patterns)
            added = self._add(patterns)
        return priced, added

    def _whole(self, weight: Floats, prices: Prices, passes: int) -> list[int]:
        """Weights as integers that are good for the patterns known."""
        ranks, step, choices = self._peaks.instance.num_ranks, self._peaks.step, self._choices
        price = np.asarray(self._choice_prices([0] * self._kinds, prices)[0], dtype=float)
        first, second, stepped = (ranks * load for load in prices.loads)
        gain = first - prices.times, second - prices.times, stepped
        at, heights = self._heights(gain[0], gain[1], stepped / step)
        held = heights @ [gain[0], gain[1], stepped / step]
        known = Known(
            np.where(choices.shut(self._outside()), np.inf, price / prices.each),
            choices.amounts, choices.group, choices.times, held / prices.each,
            ranks * self._numbers[at].astype(float),
        )  # fmt: skip
        return known.rounded(np.where(self._outside(), 0.0, weight), passes).tolist()

    def _heaviest(self, weight: Floats) -> float:
        """The largest weight of the known patterns that fit in the box."""
        return float((self._numbers @ weight)[self._fits()].max(initial=0.0))

    def _judged(
        self, weight: list[int], prices: Prices, most: int
    ) -> tuple[Priced, list[Pattern], bool]:
        """The bound of integer weights, heavy patterns, and whether no rank holds more than
        ``most``; a bound of 0 where one does, or where that takes too long."""
        peaks, kinds, box = self._peaks, self._merged.kind, self._box
        full = self._priced_out(weight, prices, most)
        by_entry = np.asarray([*full, 0], dtype=np.int64)[kinds]  # -1 is the last
        limits = Limits(box.high, box.top // peaks.step, most)
        tables = peaks.portions(by_entry, self._leads, limits, self._merged.tables)
        steps = (limits.steps + 1) * (most // 10 + 1) * sum(map(len, tables))
        steps += _PER_OPTION * len(peaks.floor)
        if steps > MOST_STEPS:
            return Priced(prices, by_entry, most, 0, 0, steps), [], True
        needed = cells(len(tables), limits)
        if needed > len(self._shared.space):
            self._shared.space = np.empty(needed, dtype=np.int64)
        least = least_loads(tables, limits, self._shared.space)
        over = np.flatnonzero(least.load[:, -1] <= box.high)
        if len(over):
            found = [least.pattern(u, most + 1) for u in over[:: -(-len(over) // _ADDED)].tolist()]
            patterns = [tuple(sorted(shards.items())) for shards in found]
            return Priced(prices, by_entry, most, 0, 0, steps), patterns, False
        ranks, times = peaks.instance.num_ranks, prices.times
        most = int(np.flatnonzero(least.load.min(axis=0) <= box.high)[-1])
        first, second, stepped = (ranks * price for price in prices.loads)
        gain = first - times, second - times, stepped
        worth = worths(least.load[:, : most + 1], box, peaks.step, ranks * prices.each, gain)
        _, left = self._choice_prices(full, prices)
        total = sum(t * price for t, price in zip(self._merged.times, left, strict=True))
        limit = int(worth.max()) + sum(map(mul, prices.memory, self._capacity))
        priced = Priced(prices, by_entry, most, limit, -((limit - total) // times), steps)
        # the heaviest pattern for each of the most promising numbers of steps
        weights = worth.argmax(axis=1).tolist()
        best = np.argsort(-worth.max(axis=1))[:_ADDED].tolist()
        return priced, [tuple(sorted(least.pattern(u, weights[u]).items())) for u in best], True

    def _priced_out(self, weight: list[int], prices: Prices, most: int) -> list[int]:
        """Weights with those of shards that do not fit in the box so large that no option with one
        is the lightest."""
        held = sum(map(mul, prices.memory, self._capacity))
        ranks = self._peaks.instance.num_ranks
        large = 2 * self._shared.upper * prices.times + held
        large = min(_LARGEST, large // prices.each + ranks * (most + 2))
        outside = self._outside().tolist()
        return [large if out else w for w, out in zip(weight, outside, strict=True)]
