"""Fit the terms of a profile's step model to measured steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any, Literal

import numpy as np

from milp_planner.features.calibrate.least_squares import relative_fit
from milp_planner.features.calibrate.machine import ELEMENT, ON_DEVICE, Sample
from milp_planner.features.calibrate.steps import StepSpec, StepTable
from milp_planner.inputs.access import Unknown, Zipf
from milp_planner.pricing.popularity import popularity
from milp_planner.pricing.step import Moved, Stream, cache_hits
from milp_planner.pricing.step_model import BatchTerms, StepModel, TableTerms
from milp_planner.pricing.storage import STATE_NUMBERS
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
    samples: Mapping[StepSpec, Sample],
    tier: Literal["hbm", "ddr"],
    origin: str,
    *,
    fused: bool = False,
) -> Fitted:
    """Fit every part by nonnegative least squares of the relative errors.

    On a GPU dispatch hides behind work, each decade of ids in a step counts alike, and there are no
    knees: its L2 cache did not show in lookups of up to 50,000 samples, and dispatch did. With
    ``fused`` tables it does show (:func:`_fit_fused`).

    Parameters
    ----------
    samples
        Steps and their times, without those that are too noisy.
    tier, origin
        Fields of :class:`StepModel`.
    fused
        Whether one call looks up all tables, and one updates them. Samples then also have, or only
        have, the device's seconds (:data:`~milp_planner.features.calibrate.machine.ON_DEVICE`).
    """
    measured = {spec: moved_by(spec) for spec in samples}
    fit = _fit_on_cpu if tier == "ddr" else _fit_on_gpu
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

    def fitted(part: str, chosen: Sequence[StepSpec]) -> tuple[TableTerms, float]:
        moved, update = [measured[spec] for spec in chosen], part == "update"
        if fused:
            pairs = [
                [(measured[s], samples[s].part(n)) for s in chosen if n in samples[s].parts]
                for n in (part, ON_DEVICE + part)
            ]
            return _fit_fused(pairs[0], pairs[1], update)
        return fit(moved, seconds(part, chosen), update)

    lookup, error["lookup"] = fitted("lookup", steps)
    update: dict[Any, TableTerms] = {}
    for optimizer in sorted({spec.optimizer for spec in steps}):
        mine = [spec for spec in steps if spec.optimizer == optimizer]
        if enough(optimizer, mine):
            update[optimizer], error[optimizer] = fitted("update", mine)
    whole = [spec for spec in steps if "dense" in samples[spec].parts]
    batch, error["dense"] = _fit_batch(whole, seconds("dense", whole))
    model = StepModel(
        tier=tier,
        fused=fused,
        lookup=lookup,
        update=update,
        batch=batch,
        error=error,
        origin=origin,
    )
    return Fitted(model, tuple(left))


@lru_cache(maxsize=1024)
def moved_by(spec: StepSpec) -> Moved:
    """The data that each table of a step moves; ``missed`` of caches of :data:`SIZES` bytes."""
    known = [popularity(access_of(t), t.rows) for t in spec.tables]
    ids = np.array([float(spec.batch * t.pooling) for t in spec.tables])
    row = np.array([float(t.dim * ELEMENT) for t in spec.tables])
    held = [
        t.dim * ELEMENT * float(1 + STATE_NUMBERS[spec.optimizer].copies(t.dim))
        for t in spec.tables
    ]
    streams = [Stream(*each) for each in zip(known, ids.tolist(), held, strict=True)]
    distinct = np.array([k.distinct(n) for k, n in zip(known, ids.tolist(), strict=True)])
    hottest = ids * np.array([k.shares[0] for k in known])
    missed = 1 - cache_hits(streams, np.array(SIZES))
    return Moved(ids, row, spec.batch * row, distinct, missed, hottest)


def predicted_parts(model: StepModel, spec: StepSpec) -> dict[str, float]:
    """Seconds of a step's parts by a model, without those that the model does not have.

    With the prefix :data:`~milp_planner.features.calibrate.machine.ON_DEVICE`, the device's work
    alone.
    """
    moved = moved_by(spec)

    parts: dict[str, float] = {}

    def add(part: str, terms: TableTerms) -> None:
        tables = float(moved.seconds(terms, SIZES).sum())
        parts[part] = terms.step_seconds + tables
        parts[ON_DEVICE + part] = terms.start_seconds + tables

    add("lookup", model.lookup)
    if (update := {**model.update}.get(spec.optimizer)) is not None:  # type: ignore[call-overload]
        add("update", update)
    if model.batch is not None:
        parts["dense"] = model.batch.of(spec.batch, len(spec.tables), spec.columns)
    return parts


def access_of(table: StepTable) -> Unknown | Zipf:
    """The access statistics of a drawn table, as in a model file."""
    return Unknown() if table.alpha == 0 else Zipf(kind="zipf", alpha=table.alpha)


def _fit_on_cpu(
    moved: Sequence[Moved], seconds: FloatArray, update: bool
) -> tuple[TableTerms, float]:
    """The best fit over all row overheads, and its median relative error."""
    fits = []
    for row_bytes in ROW_BYTES:
        terms = np.array([_summed(each, row_bytes, update) for each in moved])
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


def _summed(moved: Moved, row_bytes: float, update: bool, fused: bool = False) -> FloatArray:
    """The regressors of a step: 1 for the step itself, then sums over the tables."""
    ids, row = moved.ids, moved.row
    columns = [np.ones_like(ids), ids, ids * row, moved.output_bytes]
    columns += [moved.outputs] if fused else []
    columns += list((ids * (row + row_bytes))[None] * moved.missed.T)
    columns += [moved.distinct, moved.distinct * row] if update else []
    columns += [moved.hottest] if update and fused else []
    return np.array([1.0, *(column.sum() for column in columns)])


def _fit_fused(
    steps: Sequence[tuple[Moved, float]], device: Sequence[tuple[Moved, float]], update: bool
) -> tuple[TableTerms, float]:
    """The terms of one pass whose tables one call looks up, or updates, and the median relative
    error of the device's seconds.

    The host's dispatch is paid once a step. What a table adds is the device's work, which dispatch
    partly hides in the time of a step; so the work's terms are fitted to the device's own seconds,
    and dispatch is what whole steps take beyond it.

    Parameters
    ----------
    steps, device
        What the tables of a step move, and the seconds of the whole pass; of the device's work
        alone.
    """
    rows = np.array([_summed(moved, 0, update, fused=True) for moved, _ in device])
    alone = np.array([each for _, each in device])
    found, _ = relative_fit(rows, alone)
    errors = np.abs(rows @ found / alone - 1)
    whole = np.array([each for _, each in steps])
    summed = np.array([_summed(moved, 0, update, fused=True) for moved, _ in steps])
    work = summed[:, 1:] @ found[1:]
    step = max(float(((1 - work / whole) / whole).sum() / (whole**-2).sum()), 0.0)
    start, table, ids, bytes_, output_bytes, outputs, *more = found.tolist()
    knees, more = more[: len(SIZES)], more[len(SIZES) :]
    distinct, distinct_bytes, hottest = more or (0.0, 0.0, 0.0)
    table_terms = TableTerms(
        step_seconds=step, start_seconds=start, seconds=table, id_seconds=ids, byte_seconds=bytes_,
        output_byte_seconds=output_bytes, output_seconds=outputs,
        missed=tuple(pair for pair in zip(SIZES, knees, strict=True) if pair[1] > 0),
        distinct_seconds=distinct, distinct_byte_seconds=distinct_bytes, hottest_seconds=hottest,
    )  # fmt: skip
    return table_terms, float(median(errors))


def _fit_on_gpu(
    moved: Sequence[Moved], seconds: FloatArray, update: bool
) -> tuple[TableTerms, float]:
    """The fit with hidden dispatch, and its median relative error."""
    decade = np.log10([each.ids.sum() for each in moved]).astype(int)
    weights = 1 / np.sqrt([(decade == each).sum() for each in decade])
    works = [_work(each, update) for each in moved]
    found = fit_hidden(
        works,
        lambda rows: relative_fit(rows, seconds, weights)[0],
        lambda said: float(np.mean((weights * (said / seconds - 1)) ** 2)),
    )
    step, dispatch, ids, bytes_, output, *more = found.tolist()
    distinct, distinct_byte, hottest = more or (0.0, 0.0, 0.0)
    table = TableTerms(
        step_seconds=step, seconds=dispatch, hidden_dispatch=True, id_seconds=ids,
        byte_seconds=bytes_, output_byte_seconds=output, distinct_seconds=distinct,
        distinct_byte_seconds=distinct_byte, hottest_seconds=hottest,
    )  # fmt: skip
    return table, float(median(abs(hidden_seconds(works, found) / seconds - 1)))


def _work(moved: Moved, update: bool) -> FloatArray:
    """The regressors of every table's work on a GPU; array [tables, terms]."""
    columns = [moved.ids, moved.ids * moved.row, moved.output_bytes]
    columns += [moved.distinct, moved.distinct * moved.row, moved.hottest] if update else []
    return np.stack(columns, axis=1)


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
