"""Boxes of peaks: branch on the two peaks until every box costs as much as the best plan.

The box with the lowest bound is split. With programs over functions: at the middle of its longer
side, then by the options of a table, or by how many of some equal tables take them. With patterns:
where the program's patterns do not all pay the same, at the mean of what they pay; where they do,
its weights become finer and exclude options, then the options of a table are split; where all
tables are whole, the weights become as fine as they can.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.classes import classes_left, counted, in_counts, interchangeable
from formulations.instance import Instance, IntArray
from formulations.instance.facts import per_option
from formulations.patterns.found import Floats, Mask, Priced, Shared, Solved
from formulations.patterns.functions import Cut, Fraction, FunctionProgram
from formulations.patterns.phases import peaks_to_limit, sets_to_limit, shares_ranks
from formulations.patterns.program import LEVELS, Program
from formulations.proof.build import build_rows
from formulations.proof.functions import loads_of
from formulations.proof.peaks import Heights, Peaks, peaks_of
from formulations.proof.rows import measures
from formulations.proof.tree import bare, swept
from formulations.proof.weights import choice_prices, option_prices, vector_of
from formulations.result.certificate import Certificate

#: Heights that lie around their mean by less than this share of the plan's cost are alike; with the
#: finest weights this one.
_ALIKE, _SAME = 2e-5, 1e-8
#: And by less than this share of what the bound lacks, which a split would hardly raise.
_LITTLE = 5e-3
#: Options of a table are split where at most so many tables are alike: else no bound is raised.
_FEW = 3
#: Shares of options nearer to whole than this count as whole; programs kept.
_WHOLE, _PROGRAMS = 1e-6, 12
#: The level before all weights: programs over functions. Boxes of up to this share of the plan's
#: cost are split by options there.
FUNCTIONS, _WIDE = -1, 0.01
#: About the most steps that the checker may need.
_STEPS = 30_000_000
#: Costs and capacities below which arrays hold all sizes of functions.
_LARGE = 2**51


@dataclass(eq=False)
class Box:
    """A case: options, and heights from low to high in the first set, from base to top in the
    second.

    Attributes
    ----------
    keep : bool array [options]
    low, high, base, top : int
    level : int
        ``FUNCTIONS``, or how fine its weights are.
    use : list of Cut or Priced
        What excluded options here.
    best : Cut or Priced or None
        What proves the bound.
    fraction : Fraction or None
        The solution of its program over functions.
    priced : Priced or None
    solved : Solved or None
    split : dict
        How it is split, in the form of the file.
    children : list of Box
    """

    keep: Mask
    low: int
    high: int
    base: int
    top: int
    level: int = 0
    use: list[Cut | Priced] = field(default_factory=list)
    best: Cut | Priced | None = None
    fraction: Fraction | None = None
    priced: Priced | None = None
    solved: Solved | None = None
    split: dict[str, Any] = field(default_factory=dict)
    children: list[Box] = field(default_factory=list)

    def part(self, **changes: Any) -> Box:
        """A child."""
        names = ("keep", "low", "high", "base", "top", "level", "best", "fraction", "priced")
        own = {key: getattr(self, key) for key in names}
        return Box(**{**own, **changes})


class Boxes:
    """A tree of boxes.

    Parameters
    ----------
    peaks : Peaks
    keep : bool array [options]
        The options that the certificate's first vector leaves, at least one of each table.
    upper : int
        The cost of the best plan.
    level : int
        ``FUNCTIONS`` for programs over functions, whose work is counted; else over patterns.

    Attributes
    ----------
    count : int
        Boxes that have been open so far.
    """

    def __init__(self, peaks: Peaks, keep: Mask, upper: int, level: int = LEVELS[0]) -> None:
        self.peaks, self._shared = peaks, Shared(upper, shares_ranks(peaks.instance))
        self._programs: dict[bytes, Program] = {}
        self._loads = loads_of(peaks.instance, peaks.first, peaks.second)
        self._functions = FunctionProgram(peaks.instance, self._loads, upper)
        room = max(0, self._loads.room(keep, upper - 1))
        self.root = Box(keep, 0, room, 0, room if peaks.second else 0, level=level)
        self.count = self._steps = 0
        self._open: list[tuple[int, int, Box]] = []
        self._push(self.root, 0, lambda: True)

    @property
    def upper(self) -> int:
        """The cost of the best plan, which may be lowered."""
        return self._shared.upper

    @upper.setter
    def upper(self, upper: int) -> None:
        self._shared.upper = min(upper, self._shared.upper)

    @property
    def bound(self) -> int:
        """No plan costs less, or than the plan known."""
        return min(self.upper, self._open[0][0]) if self._open else self.upper

    def choice(self, able: Mask) -> IntArray | None:
        """The options, among some, that the program of the box with the lowest bound takes, one
        for each table; None where there are none."""
        box = self._open[0][2] if self._open else None
        if box is not None and box.fraction is not None:
            return in_counts(self.peaks.instance, box.fraction.shares * able)
        if box is None or box.solved is None:
            return None
        return self._program(box.keep).whole(box.solved.shares, able)

    def _program(self, keep: Mask) -> Program:
        """The program of some options, kept for some time."""
        key = keep.tobytes()
        if key not in self._programs:
            while len(self._programs) >= _PROGRAMS:
                del self._programs[next(iter(self._programs))]
            self._programs[key] = Program(self.peaks, keep, self._shared)
        return self._programs[key]

    @property
    def work(self) -> float:
        """Units of work spent on programs over functions so far."""
        return self._functions.work

    def run(self, over: Callable[[], bool]) -> bool:
        """Split boxes until ``over`` says so; whether more time may raise the bound."""
        while self._open and not over() and self._steps < _STEPS:
            bound, _, box = self._open[0]
            if bound >= self.upper:
                return False
            again = self._again(box)
            if not again and not box.children:
                return False
            heapq.heappop(self._open)
            self._steps -= 0 if box.best is None else box.best.steps
            for next_box in [box] if again else box.children:
                self._push(next_box, bound, over)
        return bool(self._open) and self._steps < _STEPS

    def _again(self, box: Box) -> bool:
        """Split a box, or change it so that its program is worth solving again; True for that."""
        if box.level == FUNCTIONS:
            self._by_functions(box)
            return False
        if box.solved is None or not box.solved.finished:
            return True
        if self._by_peak(box) or self._refined(box) or self._by_room(box):
            return not box.children
        alike = self._program(box.keep).alike
        few = (alike <= _FEW) | (not self._shared.fluid)
        if self._by_options(box, box.solved.shares * few) or box.level == LEVELS[-1]:
            return False
        box.level = LEVELS[-1]
        return True

    def _by_functions(self, box: Box) -> None:
        """Split a wide box at the middle of its longer side, another by the options of tables that
        are taken in parts."""
        assert box.fraction is not None
        if not (box.keep == box.fraction.keep).all():
            box.use.append(box.fraction.cut)
            box.keep = box.fraction.keep
        long, of_second = max((box.high - box.low, False), (box.top - box.base, True))
        if long <= _WIDE * self.upper and self._by_options(box, box.fraction.shares):
            return
        if long > _SAME * self.upper:
            least = box.base if of_second else box.low
            self._cut(box, of_second, least + long // 2)

    def _push(self, box: Box, bound: int, over: Callable[[], bool]) -> None:
        instance = self.peaks.instance
        if not np.logical_or.reduceat(box.keep, instance.table_options[:-1]).all():
            return
        room = self._loads.room(box.keep, self.upper - 1)
        heights = Heights.within((box.low, box.high), (box.base, box.top), room)
        if heights.empty:
            return  # any row of heights closes it
        if box.level == FUNCTIONS:
            shapes = [] if box.fraction is None else box.fraction.shapes
            box.fraction = self._functions.solve(box.keep, heights, self.upper, shapes)
            found: Cut | Priced = box.fraction.cut
        else:
            box.solved = self._program(box.keep).solve(heights, box.priced, box.level, over)
            found = box.priced = box.solved.priced
        if box.best is None or found.bound >= bound:
            box.best, bound = found, max(bound, found.bound)
        self._steps += box.best.steps  # of leaves only
        if bound < self.upper:
            self.count += 1
            heapq.heappush(self._open, (bound, self.count, box))

    def _refined(self, box: Box) -> bool:
        """Make a box's weights finer, or exclude options by them; False where neither helps."""
        assert box.priced is not None
        if box.level == LEVELS[0]:
            box.level = LEVELS[1]
            return True
        keep = self._program(box.keep).fixed(box.priced)
        if (keep == box.keep).all():
            return False
        box.use.append(box.priced)
        box.keep = keep
        return True

    def _by_peak(self, box: Box) -> bool:
        """Split a box at the mean of the heights that vary most; False where none does."""
        assert box.solved is not None
        step, near = self.peaks.step, _SAME * self.upper
        if box.level != LEVELS[-1] and box.priced is not None:
            near = max(_ALIKE * self.upper, _LITTLE * (self.upper - box.priced.bound))
        (first, around), (second, about) = box.solved.first, box.solved.second
        cuts = [(about, True, (int(second) // step + 1) * step - 1), (around, False, int(first))]
        for far, of_second, cut in sorted(cuts, reverse=True):
            least, most = (box.base, box.top) if of_second else (box.low, box.high)
            if far < near or not least <= cut < most:
                continue
            self._cut(box, of_second, cut)
            return True
        return False

    def _by_room(self, box: Box) -> bool:
        """Split a box above the height that all patterns pay for, where its lower limit is that
        height, at half of what is left to the plan's cost; False where there is none."""
        assert box.solved is not None and box.priced is not None
        if not self._shared.fluid:
            return False
        step, half = self.peaks.step, (self.upper - box.priced.bound) // 2
        (first, _), (second, _) = box.solved.first, box.solved.second
        cuts = [(second - box.base, True, ((box.base + half) // step + 1) * step - 1),
                (first - box.low, False, box.low + half)]  # fmt: skip
        for above, of_second, cut in cuts:
            least, most = (box.base, box.top) if of_second else (box.low, box.high)
            if half > _SAME * self.upper and above < half / 2 and least <= cut < most:
                self._cut(box, of_second, cut)
                return True
        return False

    def _cut(self, box: Box, of_second: bool, cut: int) -> None:
        """Split a box by the height of one set."""
        peaks, names = self.peaks, ("base", "top") if of_second else ("low", "high")
        least, most = (getattr(box, name) for name in names)
        chosen = peaks.second if of_second else peaks.first
        box.split = {"peak": [self._loads.costs[f] for f in chosen], "cuts": [cut]}
        sides = (least, cut), (cut + 1, most)
        box.children = [box.part(**dict(zip(names, side, strict=True))) for side in sides]

    def _by_options(self, box: Box, shares: Floats) -> bool:
        """Split the options of the table that is taken in parts the most: into those with few and
        those with many shards, at the mean number taken, or setting the most taken one apart; False
        where every table is whole."""
        instance = self.peaks.instance
        start, classes = instance.table_options, classes_left(instance, box.keep)
        count = shares * classes.times[instance.table_of]  # of a class's first table
        apart = np.abs(count - np.rint(count))
        each = np.add.reduceat(apart, start[:-1])
        table = int(each.argmax())
        if each[table] < _WHOLE:
            return False
        tables = classes.members[classes.of[table]]
        if len(tables) > 1 and interchangeable(instance, tables):
            return self._by_count(box, tables, count, apart)
        options = np.arange(start[table], start[table + 1])[
            box.keep[start[table] : start[table + 1]]
        ]
        shards = per_option(instance, self.peaks.number)[options].astype(float)
        share = shares[options]
        few = shards <= shards @ share / max(share.sum(), _WHOLE)
        if few.all() or not few.any():
            few = options == options[share.argmax()]
        sides = [side for side in (options[few], options[~few]) if len(side)]
        if len(sides) < 2:
            return False
        lists = [[int(option - start[table]) for option in side] for side in sides]
        box.split = {"table": table, "options": lists}
        for side in sides:
            keep = box.keep.copy()
            keep[options] = False
            keep[side] = True
            box.children.append(box.part(keep=keep))
        return True

    def _by_count(self, box: Box, tables: IntArray, count: Floats, apart: Floats) -> bool:
        """Split a box by how many of some equal tables take options with few shards, at the mean
        number; or, where that many are whole, by how many take the option that is the least so."""
        instance = self.peaks.instance
        own = np.asarray(instance.options_of(int(tables[0])))
        shards = per_option(instance, self.peaks.number)[own].astype(float)
        taken = count[own]
        few = box.keep[own] & (shards <= shards @ taken / max(taken.sum(), _WHOLE))
        many = taken[few].sum()
        if abs(many - np.rint(many)) < _WHOLE:
            few = own == own[apart[own].argmax()]
            many = taken[few].sum()
        box.split = {"tables": tables.tolist(), "counted": np.flatnonzero(few).tolist(),
                     "most": int(many)}  # fmt: skip
        cases = counted(instance, box.keep, box.split)
        box.children = [box.part(keep=keep) for keep in cases]
        return bool(cases)

    def certificate(self, first: list[dict[str, Any]]) -> Certificate:
        """The bound as a certificate whose root applies a first vector."""
        vectors: list[list[dict[str, Any]]] = [first]
        places: dict[int, int] = {}

        def place(found: Cut | Priced) -> int:
            if id(found) not in places:
                places[id(found)] = len(vectors)
                vectors.append(self._vector(found))
            return places[id(found)]

        nodes: list[dict[str, Any]] = []
        order = [self.root]
        for box in order:
            used = [*box.use] if box.split or box.best is None else [*box.use, box.best]
            use = [0] * (box is self.root) + [place(found) for found in used]
            nodes.append(({"use": use} if use else {}) | box.split)
            order += box.children
        return Certificate("bound", self.bound, tuple(vectors), tuple(nodes))

    def _vector(self, found: Cut | Priced) -> list[dict[str, Any]]:
        """A vector of a certificate: a row of functions or of peaks, and capacities."""
        instance = self.peaks.instance
        row = found.row.to_dict() if isinstance(found, Cut) else self._peaks_row(found)
        memory = zip(instance.resources, found.memory, strict=True)
        return [row, *({"row": "capacity", "of": r.name, "times": m} for r, m in memory if m)]

    def _peaks_row(self, priced: Priced) -> dict[str, Any]:
        peaks, weights = self.peaks, priced.listed(self.peaks.instance)
        first, second = ([self._loads.costs[f] for f in ks] for ks in (peaks.first, peaks.second))
        times, loads, each, _ = priced.prices
        return {"row": "peaks", "first": first, "second": second, "step": peaks.step,
                "loads": [*loads], "most": priced.most, "each": each, "weights": weights,
                "times": times}  # fmt: skip


def left_by(instance: Instance, certificate: Certificate, upper: int) -> Mask:
    """The options that a certificate's first vector leaves to plans below a cost."""
    rows = build_rows(instance)
    vector = vector_of(rows, certificate.vectors[0])
    keep = bare(rows, rows.possible.copy(), upper - 1)
    prices = option_prices(rows, choice_prices(rows, vector))
    keep, _ = swept(rows, keep, prices, vector.right(upper - 1))
    return bare(rows, keep, upper - 1)


def limited(instance: Instance, keep: Mask, upper: int, level: int) -> Peaks | None:
    """The sets of phases whose heights boxes of a level limit; None where there are none, or where
    numbers are too large for functions."""
    if level != FUNCTIONS:
        return peaks_to_limit(instance, keep, upper)
    sets, ranked = sets_to_limit(instance, keep), measures(instance).most
    if sets is None or max([upper, *ranked.tolist()]) >= _LARGE:
        return None
    return peaks_of(instance, *sets, 1)
