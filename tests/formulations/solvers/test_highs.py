"""HiGHS heeds the caller: a stop flag ends its search as a time limit does."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from formulations.clock import Limits
from formulations.model.linear import LinearModel
from formulations.solvers import highs
from formulations.solvers.answer import Found
from formulations.solvers.highs import solve_highs


def market_split(rows: int = 5, columns: int = 40) -> LinearModel:
    """Equality knapsacks that no solver settles soon (Cornuéjols & Dawande, IPCO 1998)."""
    rng, model = np.random.default_rng(0), LinearModel()
    chosen = model.columns(columns)
    spare = model.columns(2 * rows, upper=10**6)
    for row, (over, under) in enumerate(spare.reshape(rows, 2)):
        sizes = rng.integers(0, 100, columns)
        half = int(sizes.sum()) // 2
        model.row(("split", row), [*chosen, over, under], [*sizes.tolist(), -1, 1], half, half)
    model.minimise(spare, np.ones(2 * rows, dtype=np.int64))
    return model


def test_a_stop_flag_ends_the_search() -> None:
    """Set before, it ends a search that would take its whole (long) time limit, with no proof."""
    stop = threading.Event()
    stop.set()
    answer = solve_highs(market_split(), Limits(seconds=600, stop=stop))
    assert answer.status in (Found.UNKNOWN, Found.FEASIBLE)


@pytest.mark.parametrize("presolved", [0, highs.PRESOLVED_UP_TO])
def test_an_integer_program_by_hand(presolved: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """3x + 2y ≥ 4 at costs 2 and 1 with x, y ≤ 1: 3 (7/3 relaxed), in large units alike."""
    monkeypatch.setattr(highs, "PRESOLVED_UP_TO", presolved)
    for unit in (1, 10**9):
        model = LinearModel(offset=0)
        columns = model.columns(2)
        model.row(("need",), columns, [3 * unit, 2 * unit], low=4 * unit)
        model.minimise(columns, [2 * unit, unit])
        whole = solve_highs(model)
        assert (whole.status, whole.value) == (Found.OPTIMAL, 3.0 * unit)
        assert whole.bound is None


def test_infeasible_by_hand() -> None:
    """x ≥ 2 with x ≤ 1 is called infeasible."""
    model = LinearModel()
    model.row(("never",), model.columns(1), [1], low=2)
    assert solve_highs(model).status == Found.INFEASIBLE
