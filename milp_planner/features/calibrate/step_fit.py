"""Fit the terms of a profile's step model to measured steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import numpy as np

from milp_planner.features.calibrate.machine import ELEMENT, Sample
from milp_planner.features.calibrate.steps import StepSpec, StepTable
from milp_planner.inputs.access import Unknown, Zipf
from milp_planner.pricing.popularity import popularity
from milp_planner.pricing.step import Stream, cache_hits
from milp_planner.pricing.step_model import BatchTerms, StepModel, TableTerms
from milp_planner.pricing.storage import STATE_NUMBERS
from milp_planner.pricing.units import FloatArray

SIZES = tuple(2.0**power for power in (20, 22, 24, 26))
"""Candidate cache sizes in bytes that lookups may miss; the fit decides which matter."""
ROW_BYTES = (0, 32, 64, 128, 256)
"""Candidate overheads of a missed row, in bytes."""
SPILLS = tuple(2.0**power for power in range(18, 28))
"""Candidate sizes in bytes of the cache that holds the joined embeddings."""
FEWEST = 12
"""Fewest steps for a fit."""


@dataclass(frozen=True)
class Fitted:
    """The step model, and the terms left out for lack of steps."""

    model: StepModel | None
    left_out: tuple[str, ...]

    @property
    def optimizers(self) -> tuple[str, ...]:
        """Optimizers whose update is in the model."""
        return () if self.model is None else tuple(self.model.update)


def fit_steps(
    samples: Mapping[StepSpec, Sample], tier: Literal["hbm", "ddr"], origin: str
) -> Fitted:
    """Fit every part by nonnegative least squares of the relative errors.

    Parameters
    ----------
    samples
        Steps and their times, without those that are too noisy.
    tier, origin
        Fields of :class:`StepModel`.
    """
    measured = {spec: _Moved.of(spec) for spec in samples}
    steps = list(samples)
    left: list[str] = []
    error: dict[str, float] = {}

    def seconds(part: str, chosen: Sequence[StepSpec]) -> FloatArray:
        return np.array([samples[spec].part(part) for spec in chosen])

    def enough(what: str, chosen: Sequence[StepSpec]) -> bool:
        if len(chosen) < FEWEST:
            left.append(f"the step's {what}: {len(chosen)} of the {FEWEST} steps it needs are left")
        return len(chosen) >= FEWEST

    if not enough("lookup", steps):
        return Fitted(None, tuple(left))
    lookup, error["lookup"] = _fit_table(
        [measured[s] for s in steps], seconds("lookup", steps), False
    )
    update: dict[Any, TableTerms] = {}
    for optimizer in sorted({spec.optimizer for spec in steps}):
        mine = [spec for spec in steps if spec.optimizer == optimizer]
        if enough(optimizer, mine):
            found = _fit_table([measured[s] for s in mine], seconds("update", mine), True)
            update[optimizer], error[optimizer] = found
    batch, error["dense"] = _fit_batch(steps, seconds("dense", steps))
    model = StepModel(
        tier=tier, lookup=lookup, update=update, batch=batch, error=error, origin=origin
    )
    return Fitted(model, tuple(left))


@dataclass(frozen=True, eq=False)
class _Moved:
    """The data that each table of a step moves; arrays [tables], ``missed`` [tables, sizes]."""

    ids: FloatArray
    row: FloatArray
    output: FloatArray
    distinct: FloatArray
    missed: FloatArray

    @staticmethod
    def of(spec: StepSpec) -> _Moved:
        known = [popularity(access_of(t), t.rows) for t in spec.tables]
        ids = np.array([float(spec.batch * t.pooling) for t in spec.tables])
        row = np.array([float(t.dim * ELEMENT) for t in spec.tables])
        held = [
            t.dim * ELEMENT * float(1 + STATE_NUMBERS[spec.optimizer].copies(t.dim))
            for t in spec.tables
        ]
        streams = [Stream(*each) for each in zip(known, ids.tolist(), held, strict=True)]
        distinct = np.array([k.distinct(n) for k, n in zip(known, ids.tolist(), strict=True)])
        return _Moved(
            ids, row, spec.batch * row, distinct, 1 - cache_hits(streams, np.array(SIZES))
        )

    def terms(self, row_bytes: float, update: bool) -> FloatArray:
        """The regressors: 1 for the step itself, then sums over the tables."""
        ids, row = self.ids, self.row
        columns = [np.ones_like(ids), ids, ids * row, self.output]
        columns += list((ids * (row + row_bytes))[None] * self.missed.T)
        columns += [self.distinct, self.distinct * row] if update else []
        return np.array([1.0, *(column.sum() for column in columns)])


def access_of(table: StepTable) -> Unknown | Zipf:
    """The access statistics of a drawn table, as in a model file."""
    return Unknown() if table.alpha == 0 else Zipf(kind="zipf", alpha=table.alpha)


def _fit_table(moved: list[_Moved], seconds: FloatArray, update: bool) -> tuple[TableTerms, float]:
    """The best fit over all row overheads, and its median relative error."""
    fits = []
    for row_bytes in ROW_BYTES:
        terms = np.array([each.terms(row_bytes, update) for each in moved])
        found, error = relative_fit(terms, seconds)
        fits.append((error, row_bytes, found, float(median(abs(terms @ found / seconds - 1)))))
    _, row_bytes, found, typical = min(fits, key=lambda fit: fit[0])
    knees = found[5 : 5 + len(SIZES)]
    table = TableTerms(
        step_seconds=found[0], seconds=found[1], id_seconds=found[2], byte_seconds=found[3],
        output_byte_seconds=found[4],
        missed=tuple((size, cost) for size, cost in zip(SIZES, knees, strict=True) if cost > 0),
        row_bytes=float(row_bytes),
        distinct_seconds=found[-2] if update else 0.0,
        distinct_byte_seconds=found[-1] if update else 0.0,
    )  # fmt: skip
    return table, typical


def _fit_batch(steps: list[StepSpec], seconds: FloatArray) -> tuple[BatchTerms, float]:
    fits = []
    for cache in SPILLS:
        terms = np.array(
            [
                [1.0, len(s.tables), s.batch, s.batch * s.columns,
                 max(s.batch * s.columns * ELEMENT - cache, 0.0)]
                for s in steps
            ]
        )  # fmt: skip
        found, error = relative_fit(terms, seconds)
        fits.append((error, cache, found, float(median(abs(terms @ found / seconds - 1)))))
    _, cache, found, typical = min(fits, key=lambda fit: fit[0])
    batch = BatchTerms(
        seconds=found[0], table_seconds=found[1], sample_seconds=found[2],
        column_seconds=found[3], spilled=(cache, found[4]),
    )  # fmt: skip
    return batch, typical


def relative_fit(terms: FloatArray, seconds: FloatArray) -> tuple[FloatArray, float]:
    """Nonnegative coefficients with the least mean squared relative error, and that error.

    References
    ----------
    C. Lawson, R. Hanson, "Solving least squares problems", 1974, chapter 23 (algorithm NNLS).
    """
    scaled = terms / seconds[:, None]
    size = np.linalg.norm(scaled, axis=0)
    size[size == 0] = 1.0
    found = _nonnegative(scaled / size, np.ones(len(seconds))) / size
    return found, float(np.mean((scaled @ found - 1) ** 2))


def _nonnegative(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """NNLS for unit columns: free the column that helps most, fix at 0 those that turn negative."""
    found = np.zeros(matrix.shape[1])
    free = np.zeros(matrix.shape[1], np.bool_)
    for _ in range(10 * matrix.shape[1]):
        slope = np.where(free, -np.inf, matrix.T @ (target - matrix @ found))
        if slope.max() <= 1e-10:
            break
        free[slope.argmax()] = True
        while True:
            wanted = np.zeros_like(found)
            wanted[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
            wrong = free & (wanted <= 0)
            if not wrong.any():
                found = wanted
                break
            share = (found[wrong] / (found[wrong] - wanted[wrong])).min()
            found = found + share * (wanted - found)
            free &= found > 1e-15
            found[~free] = 0.0
    return found
