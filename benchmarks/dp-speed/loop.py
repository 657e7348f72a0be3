"""The straightforward dynamic programme: three nested Python loops over plain floats and lists."""

from __future__ import annotations

from collections.abc import Sequence

State = tuple[float, float, float]
Back = tuple[int, int, int]
_INF = float("inf")


def run(
    tables: Sequence[Sequence[tuple[float, float, float]]], hbm_bins: int, ddr_bins: int
) -> list[tuple[tuple[int, int], State, list[int]]]:
    """Final cells with their state and the choice of every table.

    Parameters
    ----------
    tables : sequence of sequences of (hbm bins, ddr bins, cost)
    hbm_bins, ddr_bins : int
    """
    layer: list[list[State | None]] = [[None] * ddr_bins for _ in range(hbm_bins)]
    layer[0][0] = (0.0, 0.0, 0.0)
    history: list[list[list[Back | None]]] = []
    for options in tables:
        after: list[list[State | None]] = [[None] * ddr_bins for _ in range(hbm_bins)]
        back: list[list[Back | None]] = [[None] * ddr_bins for _ in range(hbm_bins)]
        for h in range(hbm_bins):
            row = layer[h]
            for d in range(ddr_bins):
                state = row[d]
                if state is None:
                    continue
                cost, hbm, ddr = state
                for choice, (more_hbm, more_ddr, more_cost) in enumerate(options):
                    new_hbm = hbm + more_hbm
                    new_ddr = ddr + more_ddr
                    if new_hbm >= hbm_bins or new_ddr >= ddr_bins:
                        continue
                    new_cost = cost + more_cost
                    there = after[int(new_hbm)][int(new_ddr)]
                    if there is None or there[0] > new_cost:
                        after[int(new_hbm)][int(new_ddr)] = (new_cost, new_hbm, new_ddr)
                        back[int(new_hbm)][int(new_ddr)] = (choice, h, d)
        layer = after
        history.append(back)
    return [
        ((h, d), state, _path(history, h, d))
        for h, row in enumerate(layer)
        for d, state in enumerate(row)
        if state is not None
    ]


def _path(history: list[list[list[Back | None]]], h: int, d: int) -> list[int]:
    path = []
    for back in reversed(history):
        step = back[h][d]
        assert step is not None
        choice, h, d = step
        path.append(choice)
    return path[::-1]
