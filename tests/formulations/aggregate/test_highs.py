"""HiGHS heeds the caller: a stop flag ends its search as a time limit does."""

from __future__ import annotations

import threading

import numpy as np

from formulations.aggregate.highs import solve_highs
from formulations.aggregate.linear import LinearModel


def market_split(rows: int = 5, columns: int = 40) -> LinearModel:
    """Equality knapsacks that no solver settles soon (Cornuéjols & Dawande, IPCO 1998)."""
    rng, model = np.random.default_rng(0), LinearModel()
    first = model.columns(columns)
    chosen = range(first, first + columns)
    for _ in range(rows):
        sizes = rng.integers(0, 100, columns)
        over, under = model.columns(1, upper=10**6), model.columns(1, upper=10**6)
        model.objective[over] = model.objective[under] = 1
        half = int(sizes.sum()) // 2
        model.row([*chosen, over, under], [*sizes.tolist(), -1, 1], half, half)
    return model


def test_a_stop_flag_ends_the_search() -> None:
    """Set before, it ends a search that would take its whole (long) time limit, with no proof."""
    stop = threading.Event()
    stop.set()
    result = solve_highs(market_split(), whole=True, time_limit=600, stop=stop)
    assert result.status == "limit"
