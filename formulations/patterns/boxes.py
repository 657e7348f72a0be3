"""Boxes of peaks: branch on the two peaks until every box costs as much as the best plan.

The box with the lowest bound is split where the program's patterns do not all pay the same, at the
mean of what they pay. Where they do, its weights become finer and exclude options, then the options
of a table are split; where all tables are whole, the weights become as fine as they can.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.instance.facts import per_option
from formulations.patterns.found import Mask, Priced, Shared, Solved
from formulations.patterns.program import LEVELS, Program
from formulations.proof.peaks import Heights, Peaks
from formulations.result.certificate import Certificate

#: Heights that lie around their mean by less than this share of the plan's cost are alike; with the
#: finest weights this one.
_ALIKE, _SAME = 2e-5, 1e-8
#: Shares of options nearer to whole than this count as whole; programs kept.
_WHOLE, _PROGRAMS = 1e-6, 12
#: About the most steps that the checker may need.
_STEPS = 30_000_000


@dataclass(eq=False)
class Box:
    """A case: options, and heights from low to high in the first set, from base to top in the
    second.

    Attributes
    ----------
    keep : bool array [options]
    low, high, base, top : int
    level : int
        How fine its weights are.
    use : list of Priced
        Weights that excluded options here.
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
    use: list[Priced] = field(default_factory=list)
    priced: Priced | None = None
    solved: Solved | None = None
    split: dict[str, Any] = field(default_factory=dict)
    children: list[Box] = field(default_factory=list)

    def part(self, **changes: Any) -> Box:
        """A child."""
        own = {key: getattr(self, key) for key in ("keep", "low", "high", "base", "top")}
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
    """

    def __init__(self, peaks: Peaks, keep: Mask, upper: int) -> None:
        self.peaks, self._shared = peaks, Shared(upper)
        self._programs: dict[bytes, Program] = {}
        room = max(0, self._program(keep).room)
        self.root = Box(keep, 0, room, 0, room if peaks.second else 0)
        self._count = self._steps = 0
        self._open: list[tuple[int, int, Box]] = [(0, 0, self.root)]

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

    def _program(self, keep: Mask) -> Program:
        """The program of some options, kept for some time."""
        key = keep.tobytes()
        if key not in self._programs:
            while len(self._programs) >= _PROGRAMS:
                del self._programs[next(iter(self._programs))]
            self._programs[key] = Program(self.peaks, keep, self._shared)
        return self._programs[key]

    def run(self, over: Callable[[], bool]) -> bool:
        """Split boxes until ``over`` says so; whether more time may raise the bound."""
        while self._open and not over() and self._steps < _STEPS:
            bound, _, box = self._open[0]
            if bound >= self.upper:
                return False
            again = box.solved is None or not box.solved.finished
            if not again and not self._by_peak(box):
                again = self._refined(box)
                if not again and not self._by_options(box):
                    if box.level == LEVELS[-1]:
                        return False
                    again, box.level = True, LEVELS[-1]
            heapq.heappop(self._open)
            self._steps -= 0 if box.priced is None else box.priced.steps
            for next_box in [box] if again else box.children:
                self._push(next_box, box.priced, over)
        return bool(self._open) and self._steps < _STEPS

    def _push(self, box: Box, known: Priced | None, over: Callable[[], bool]) -> None:
        box.priced = known
        instance = self.peaks.instance
        if not np.logical_or.reduceat(box.keep, instance.table_options[:-1]).all():
            return
        program = self._program(box.keep)
        heights = Heights.within((box.low, box.high), (box.base, box.top), program.room)
        if heights.empty:
            return  # any row of peaks closes it
        box.solved = program.solve(heights, known, box.level, over)
        box.priced = priced = box.solved.priced
        self._steps += priced.steps  # of leaves only
        if priced.bound < self.upper:
            self._count += 1
            heapq.heappush(self._open, (priced.bound, self._count, box))

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
        step, near = self.peaks.step, _SAME if box.level == LEVELS[-1] else _ALIKE
        (first, around), (second, about) = box.solved.first, box.solved.second
        cuts = [(about, True, (int(second) // step + 1) * step - 1), (around, False, int(first))]
        for far, of_second, cut in sorted(cuts, reverse=True):
            least, most = (box.base, box.top) if of_second else (box.low, box.high)
            if far < near * self.upper or not least <= cut < most:
                continue
            chosen = self.peaks.second if of_second else self.peaks.first
            box.split = {"peak": self._names(chosen), "cuts": [cut]}
            names = ("base", "top") if of_second else ("low", "high")
            sides = (least, cut), (cut + 1, most)
            box.children = [box.part(**dict(zip(names, side, strict=True))) for side in sides]
            return True
        return False

    def _by_options(self, box: Box) -> bool:
        """Split the options of the table that is taken in parts the most: into those with few and
        those with many shards, at the mean number taken, or setting the most taken one apart; False
        where every table is whole."""
        assert box.solved is not None
        instance, shares = self.peaks.instance, box.solved.shares
        start = instance.table_options
        apart = np.minimum(shares, np.abs(1 - shares))
        each = np.add.reduceat(apart, start[:-1])
        table = int(each.argmax())
        if each[table] < _WHOLE:
            return False
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
            box.children.append(box.part(keep=keep, level=box.level))
        return True

    def certificate(self, first: list[dict[str, Any]]) -> Certificate:
        """The bound as a certificate whose root applies a first vector."""
        vectors: list[list[dict[str, Any]]] = [first]
        places: dict[int, int] = {}

        def place(priced: Priced) -> int:
            if id(priced) not in places:
                places[id(priced)] = len(vectors)
                vectors.append(self._vector(priced))
            return places[id(priced)]

        nodes: list[dict[str, Any]] = []
        order = [self.root]
        for box in order:
            used = [*box.use] if box.split or box.priced is None else [*box.use, box.priced]
            use = [0] * (box is self.root) + [place(priced) for priced in used]
            nodes.append(({"use": use} if use else {}) | box.split)
            order += box.children
        return Certificate("bound", self.bound, tuple(vectors), tuple(nodes))

    def _names(self, phases: tuple[int, ...]) -> list[str]:
        return [self.peaks.instance.phases[phase] for phase in phases]

    def _vector(self, priced: Priced) -> list[dict[str, Any]]:
        """A vector of a certificate: a row of peaks, and capacities."""
        peaks, instance = self.peaks, self.peaks.instance
        weights = []
        for entry in np.flatnonzero(priced.weight).tolist():
            option = int(peaks.option[entry])
            table = int(instance.table_of[option])
            at = option - int(instance.table_options[table])
            first = int(instance.block_shards[instance.option_blocks[option]])
            weights.append([table, at, entry - first, int(priced.weight[entry])])
        row = {"row": "peaks", "first": self._names(peaks.first),
               "second": self._names(peaks.second), "step": peaks.step, "most": priced.most,
               "each": priced.each, "weights": weights, "times": self._shared.times}  # fmt: skip
        memory = zip(instance.resources, priced.memory, strict=True)
        return [row, *({"row": "capacity", "of": r.name, "times": m} for r, m in memory if m)]
