"""The heaviest pattern, a knapsack: at most one portion per table, within target and memory."""

from __future__ import annotations

import numpy as np

from formulations.instance import IntArray
from formulations.patterns.found import Floats, Mask
from formulations.patterns.portions import Portions

#: Most steps into which the target is divided. Where the loads' common divisor would need more, the
#: loads are rounded down to steps, so a pattern may exceed the target a little: the bound that
#: follows is weaker, but never wrong.
STEPS = 8192
_TINY = 1e-9


def heaviest(
    portions: Portions, weight: Floats, target: int, keep: Mask, fits: bool = False
) -> tuple[float, IntArray]:
    """The weight of the heaviest pattern, and its portions.

    Parameters
    ----------
    portions : Portions
    weight : float array [portions]
    target : int
        The highest cost of a rank.
    keep : bool array [options]
    fits : bool
        Whether to round loads up and respect memory as well, so that a rank can hold the pattern;
        it is then a heavy pattern, but perhaps not the heaviest.
    """
    step = portions.unit * max(1, -(-target // (STEPS * portions.unit)))
    size = -(-portions.load // step) if fits else portions.load // step
    end = target // step
    best, back = np.zeros(end + 1), []
    held = np.zeros((end + 1, portions.use.shape[1]), dtype=np.int64)
    usable = (weight > _TINY) & keep[portions.option] & (portions.load <= target)
    for own in portions.of_table:
        new, chosen = best.copy(), np.full(end + 1, -1, dtype=np.int64)
        more = held.copy()
        for portion in own[usable[own]].tolist():
            low = int(size[portion])
            if low > end:
                continue
            value = best[: end + 1 - low] + weight[portion]
            better = value > new[low:] + _TINY
            if fits:
                memory = held[: end + 1 - low] + portions.use[portion]
                better &= (memory <= portions.capacity).all(axis=1)
                more[low:][better] = memory[better]
            new[low:][better] = value[better]
            chosen[low:][better] = portion
        best, held = new, more
        back.append(chosen)
    at = int(best.argmax())
    value, pattern = float(best[at]), []
    for chosen in reversed(back):
        if chosen[at] >= 0:
            pattern.append(int(chosen[at]))
            at -= int(size[pattern[-1]])
    return value, np.asarray(pattern[::-1], dtype=np.int64)
