"""The dynamic programme as a plain loop over states and options: the oracle for the fast one.

Written from the description of the published algorithm (see docs/method.md): one state per
cell, totals untruncated in bin units, strict comparison with the number of bins, the first of
equally cheap states kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LoopState:
    """The cheapest way into a cell, and the options that lead there."""

    cost: float
    hbm: float
    ddr: float
    options: tuple[int, ...]


def loop(
    tables: Sequence[Sequence[tuple[int, float, float, float]]],
    bins: tuple[int, int],
    dtype: type[np.floating] = np.float64,
) -> dict[tuple[int, int], LoopState]:
    """Run the programme.

    Parameters
    ----------
    tables : sequence of sequences of (option, hbm bins, ddr bins, cost)
    bins : tuple of int
    dtype : type
        Every sum is rounded to it.

    Returns
    -------
    dict of (hbm bin, ddr bin) to LoopState
    """
    states = {(0, 0): LoopState(0.0, 0.0, 0.0, ())}
    for options in tables:
        reached: dict[tuple[int, int], LoopState] = {}
        for cell in sorted(states):
            state = states[cell]
            for option, hbm, ddr, cost in options:
                new_hbm = dtype(state.hbm) + dtype(hbm)
                new_ddr = dtype(state.ddr) + dtype(ddr)
                if new_hbm >= bins[0] or new_ddr >= bins[1]:
                    continue
                new_cost = dtype(state.cost) + dtype(cost)
                target = (int(new_hbm), int(new_ddr))
                if target not in reached or reached[target].cost > new_cost:
                    path = (*state.options, option)
                    reached[target] = LoopState(
                        float(new_cost), float(new_hbm), float(new_ddr), path
                    )
        states = reached
    return states
