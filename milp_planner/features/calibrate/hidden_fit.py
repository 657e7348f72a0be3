"""Fit seconds of steps whose dispatch hides behind the device's work.

A GPU works while the host dispatches: a table takes the longer of its dispatch and its work,
T = a + Σ_tables max(b, work). Given which tables dispatch bounds, T is linear in a, b and the
terms of the work. So two steps alternate: decide it with the last coefficients, and fit anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from milp_planner.pricing.units import FloatArray

ROUNDS, DAMPED = 30, 20
"""Fits, of which the first ones move coefficients half the way, so as not to swing."""
Fit = Callable[[FloatArray], FloatArray]
"""Coefficients for one row of regressors a step."""


def fit_hidden(
    works: Sequence[FloatArray], fit: Fit, error: Callable[[FloatArray], float]
) -> FloatArray:
    """Coefficients (a, b, those of the work) with the least error that the alternation comes by.

    Parameters
    ----------
    works : sequence of float arrays [tables, terms]
        Regressors of the work of every step's tables.
    fit
        Fits coefficients to rows (1, tables that dispatch bounds, work of the others).
    error
        Error of the seconds of all steps, as :func:`hidden_seconds` gives them.
    """
    additive = fit(np.array([[1.0, len(work), *work.sum(0)] for work in works]))
    found = additive
    best = (error(hidden_seconds(works, found)), found)
    for number in range(ROUNDS):
        rows = [_row(work, found) for work in works]
        new = fit(np.array(rows))
        if new[1] == 0:  # nothing is bound by dispatch any more: keep its last estimate
            new[1] = found[1]
        found = (found + new) / 2 if number < DAMPED else new
        best = min(best, (error(hidden_seconds(works, found)), found), key=lambda each: each[0])
    return best[1]


def hidden_seconds(works: Sequence[FloatArray], found: FloatArray) -> FloatArray:
    """Seconds of every step: a + Σ_tables max(b, work); array [steps]."""
    return np.array([found[0] + np.maximum(found[1], w @ found[2:]).sum() for w in works])


def _row(work: FloatArray, found: FloatArray) -> list[float]:
    long = work @ found[2:] > found[1]
    return [1.0, float((~long).sum()), *work[long].sum(0).tolist()]
