"""Boxes of peaks: branch on the two peaks until every box costs as much as the best plan.

The box with the lowest bound is split where the program's patterns do not all pay the same, at the
mean of what they pay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.patterns.merged import Merged, merged
from formulations.patterns.program import Priced, Program, Solved
from formulations.proof.peaks import Heights, Peaks
from formulations.result.certificate import Certificate

#: Heights that lie around their mean by less than this share of the plan's cost are alike.
_ALIKE = 2e-5
#: About the most steps that the checker may need.
_STEPS = 20_000_000


@dataclass(eq=False)
class Box:
    """A case: heights from low to high in the first set, and in the second in steps.

    Attributes
    ----------
    low, high, base, top : int
    priced : Priced or None
    solved : Solved or None
    fine : bool
        Whether its weights are fine.
    cut : (bool, int) or None
        Whether it is split in the second set, and the largest height of the first child.
    children : list of Box
    """

    low: int
    high: int
    base: int
    top: int
    priced: Priced | None = None
    solved: Solved | None = None
    fine: bool = False
    cut: tuple[bool, int] | None = None
    children: list[Box] = field(default_factory=list)


class Boxes:
    """A tree of boxes for one set of options.

    Parameters
    ----------
    peaks : Peaks
    keep : bool array [options]
        The options that the certificate's first vector leaves.
    upper : int
        The cost of the best plan, which may be lowered later.
    """

    def __init__(self, peaks: Peaks, keep: NDArray[np.bool_], upper: int) -> None:
        self.peaks, self.upper = peaks, upper
        self._merged: Merged = merged(peaks, keep)
        self._program = Program(peaks, self._merged, keep, upper)
        room = max(0, self._program.room)
        self.root = Box(0, room, 0, room if peaks.second else 0)
        self._count = self._steps = 0
        self._open: list[tuple[int, int, Box]] = [(0, 0, self.root)]

    @property
    def bound(self) -> int:
        """No plan costs less, or than the plan known."""
        return min(self.upper, self._open[0][0]) if self._open else self.upper

    def run(self, over: Callable[[], bool]) -> bool:
        """Split boxes until ``over`` says so; whether more time may raise the bound."""
        while self._open and not over() and self._steps < _STEPS:
            bound, _, box = self._open[0]
            if bound >= self.upper:
                return False
            again = box.solved is None or not box.solved.finished
            if not again and not self._split(box):
                if box.fine:
                    return False
                again = box.fine = True
            heapq.heappop(self._open)
            self._steps -= 0 if box.priced is None else box.priced.steps
            for next_box in [box] if again else box.children:
                self._push(next_box, box.priced, over)
        return bool(self._open) and self._steps < _STEPS

    def _push(self, box: Box, known: Priced | None, over: Callable[[], bool]) -> None:
        heights = Heights.within((box.low, box.high), (box.base, box.top), self._program.room)
        box.priced = known
        if heights.empty:
            return  # any row of peaks closes it
        solved = self._program.solve(heights, known, box.fine, over)
        box.solved, box.priced = solved, solved.priced
        self._steps += solved.priced.steps  # of leaves only
        if solved.priced.bound < self.upper:
            self._count += 1
            heapq.heappush(self._open, (solved.priced.bound, self._count, box))

    def _split(self, box: Box) -> bool:
        """Split a box at the mean of the heights that vary most; False where none does."""
        assert box.solved is not None
        step = self.peaks.step
        (first, around), (second, about) = box.solved.first, box.solved.second
        cuts = [(about, True, (int(second) // step + 1) * step - 1), (around, False, int(first))]
        for far, of_second, cut in sorted(cuts, reverse=True):
            least, most = (box.base, box.top) if of_second else (box.low, box.high)
            if far < _ALIKE * self.upper or not least <= cut < most:
                continue
            box.cut = of_second, cut
            sides = (least, cut), (cut + 1, most)
            box.children = [
                Box(box.low, box.high, *side) if of_second else Box(*side, box.base, box.top)
                for side in sides
            ]
            return True
        return False

    def certificate(self, first: list[dict[str, Any]]) -> Certificate:
        """The bound as a certificate whose root applies a first vector."""
        vectors: list[list[dict[str, Any]]] = [first]
        nodes: list[dict[str, Any]] = []
        places: dict[int, int] = {}
        order = [self.root]
        for box in order:
            node: dict[str, Any] = {"use": [0]} if box is self.root else {}
            if box.cut is not None:
                second, cut = box.cut
                chosen = self.peaks.second if second else self.peaks.first
                node |= {"peak": self._names(chosen), "cuts": [cut]}
                order += box.children
            elif box.priced is not None:
                if id(box.priced) not in places:
                    places[id(box.priced)] = len(vectors)
                    vectors.append(self._vector(box.priced))
                node["use"] = [*node.get("use", []), places[id(box.priced)]]
            nodes.append(node)
        return Certificate("bound", self.bound, tuple(vectors), tuple(nodes))

    def _names(self, phases: tuple[int, ...]) -> list[str]:
        return [self.peaks.instance.phases[phase] for phase in phases]

    def _vector(self, priced: Priced) -> list[dict[str, Any]]:
        """A vector of a certificate: a row of peaks, and capacities."""
        peaks, instance = self.peaks, self.peaks.instance
        weights = []
        for entry in np.flatnonzero(self._merged.kind >= 0).tolist():
            weight = priced.weight[int(self._merged.kind[entry])]
            if weight:
                option = int(peaks.option[entry])
                table = int(instance.table_of[option])
                at = option - int(instance.table_options[table])
                first = int(instance.block_shards[instance.option_blocks[option]])
                weights.append([table, at, entry - first, weight])
        row = {"row": "peaks", "first": self._names(peaks.first),
               "second": self._names(peaks.second), "step": peaks.step, "most": priced.most,
               "each": priced.each, "weights": weights, "times": self._program.times}  # fmt: skip
        memory = zip(instance.resources, priced.memory, strict=True)
        return [row, *({"row": "capacity", "of": r.name, "times": m} for r, m in memory if m)]
