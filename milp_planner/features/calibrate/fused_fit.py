"""Fit seconds of steps whose tables one call looks up, and one updates.

The host's dispatch is paid once a step. What a table adds is the device's work, which dispatch
partly hides in the time of a step; so the work's terms are fitted to the device's own seconds, and
dispatch is what whole steps take beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from milp_planner.features.calibrate.least_squares import relative_fit
from milp_planner.pricing.step import Moved
from milp_planner.pricing.step_model import TableTerms

Timed = Sequence[tuple[Moved, float]]
"""What the tables of a step move, and seconds."""


def fit_fused(
    steps: Timed, device: Timed, update: bool, sizes: tuple[float, ...]
) -> tuple[TableTerms, float]:
    """The terms of one pass, and the median relative error of the device's seconds.

    Parameters
    ----------
    steps, device
        The whole pass, and the device's work alone; ``missed`` is of caches of ``sizes`` bytes.
    update
        Whether the pass is an update.
    """
    rows = np.array([[1.0, *_work(moved, update)] for moved, _ in device])
    alone = np.array([each for _, each in device])
    found, _ = relative_fit(rows, alone)
    errors = np.abs(rows @ found / alone - 1)
    whole = np.array([each for _, each in steps])
    work = np.array([_work(moved, update) for moved, _ in steps]) @ found[1:]
    step = max(float(((1 - work / whole) / whole).sum() / (whole**-2).sum()), 0.0)
    start, table, ids, bytes_, output_bytes, outputs, *more = found.tolist()
    knees, more = more[: len(sizes)], more[len(sizes) :]
    distinct, distinct_bytes, hottest = more or (0.0, 0.0, 0.0)
    table_terms = TableTerms(
        step_seconds=step, start_seconds=start, seconds=table, id_seconds=ids, byte_seconds=bytes_,
        output_byte_seconds=output_bytes, output_seconds=outputs,
        missed=tuple(pair for pair in zip(sizes, knees, strict=True) if pair[1] > 0),
        distinct_seconds=distinct, distinct_byte_seconds=distinct_bytes, hottest_seconds=hottest,
    )  # fmt: skip
    return table_terms, float(median(errors))


def _work(moved: Moved, update: bool) -> list[float]:
    """The regressors of the device's work, summed over the tables."""
    ids, row = moved.ids, moved.row
    columns = [np.ones_like(ids), ids, ids * row, moved.output_bytes, moved.outputs]
    columns += list(ids * row * moved.missed.T)
    columns += [moved.distinct, moved.distinct * row, moved.hottest] if update else []
    return [float(column.sum()) for column in columns]
