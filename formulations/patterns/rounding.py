"""Weights as integers: each is rounded up or down as is best for the patterns known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import IntArray
from formulations.patterns.found import Floats


@dataclass(frozen=True, eq=False)
class Known:
    """What weights are worth, in prices of a weight of 1.

    Attributes
    ----------
    price : float array [choices]
        Of a choice without its weights; infinite where it is not allowed.
    amounts : float array [choices, kinds]
        Shards of each kind.
    group, times : int array [choices], float array [classes]
        Class of a choice, tables of a class.
    held : float array [patterns]
        What a pattern is worth to all ranks without its weights.
    numbers : float array [patterns, kinds]
        What a weight of 1 adds to that.
    """

    price: Floats
    amounts: Floats
    group: IntArray
    times: Floats
    held: Floats
    numbers: Floats

    def rounded(self, weight: Floats, passes: int) -> IntArray:
        """Integers next to the weights of each kind at which the tables' lightest choices weigh the
        most above the heaviest pattern, after some passes over all weights."""
        state = _State(self, np.maximum(0.0, np.rint(weight)))
        if not np.isfinite(state.value):
            return state.whole.astype(np.int64)
        order = np.argsort(-weight)[: np.count_nonzero(weight > 0)].tolist()
        for _ in range(passes):
            if not sum([state.moved(kind, 1) or state.moved(kind, -1) for kind in order]):
                break
        return state.whole.astype(np.int64)


class _State:
    """Integer weights and what they are worth, infinite where some table has no choice."""

    def __init__(self, known: Known, whole: Floats) -> None:
        self._known, self.whole = known, whole
        self._paid = known.price + known.amounts @ whole
        self._held = known.held + known.numbers @ whole
        self._least = np.full(len(known.times), np.inf)
        np.minimum.at(self._least, known.group, self._paid)
        self.value = float(known.times @ self._least - self._held.max())

    def moved(self, kind: int, by: int) -> bool:
        """Change a weight by 1 if that is better."""
        known, amount = self._known, by * self._known.amounts[:, kind]
        if self.whole[kind] + by < 0:
            return False
        group = int(known.group[np.abs(amount).argmax()])
        own = known.group == group
        least = float((self._paid[own] + amount[own]).min())
        held = self._held + by * known.numbers[:, kind]
        gain = known.times[group] * (least - self._least[group])
        value = self.value + gain - float(held.max() - self._held.max())
        if not value > self.value:
            return False
        self._paid, self._held, self.value = self._paid + amount, held, value
        self._least[group] = least
        self.whole[kind] += by
        return True
