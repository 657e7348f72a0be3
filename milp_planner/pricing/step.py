"""Lookup and update of tables priced by the terms of a measured step.

A processor's cache is not a tier for placing tables: it holds the most recently used rows of all
tables of the rank. Che's approximation gives the share of a table's ids that a cache of a given
size serves; the others cost more (:class:`TableTerms`).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.popularity import Popularity, popularity
from milp_planner.pricing.step_model import StepModel, TableTerms
from milp_planner.pricing.storage import STATE_BYTES, STATE_NUMBERS
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray

HALVINGS = 48
"""Bisections of the logarithm of the characteristic time: they shrink a span of 80 to 3e-13."""


def priced_by_step(job: Job, options: OptionColumns) -> BoolArray:
    """Which shard entries the profile's step model prices; bool array like the options' columns.

    These are the tables in the tier of the measured ones, except replicated tables, whose gradient
    is dense.
    """
    step = job.profile.step
    none = np.zeros(len(options.table), np.bool_)
    if step is None or job.site.cpu_only != (step.tier == "ddr"):
        return none
    there = options.is_mode("HOST_ONLY" if step.tier == "ddr" else "HBM_ONLY")
    return there & ~options.is_sharding("data_parallel")


def in_slower_tiers(job: Job, options: OptionColumns) -> BoolArray:
    """Which shard entries cost at least what the step model gives; bool array like the columns.

    These are tables behind HBM, where HBM was measured: rows of a slower tier, or of a cache, are
    never faster than those in HBM.
    """
    step = job.profile.step
    if step is None or step.tier == "ddr" or job.site.cpu_only:
        return np.zeros(len(options.table), np.bool_)
    return ~options.is_mode("HBM_ONLY") & ~options.is_sharding("data_parallel")


def step_seconds(
    job: Job, step: StepModel, options: OptionColumns, shards: ShardColumns,
    ids: FloatArray, outputs: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Seconds of the lookup, and of gradient and update, of every shard entry.

    Parameters
    ----------
    ids, outputs : float array [entries]
        Ids that a shard receives in a step, and rows that it sends back.
    """
    table, element = options.table, job.tables.element[options.table]
    row = (shards.columns * element).astype(np.float64)
    missed = 1.0 - cache_hits_of(job, step.sizes)[table]
    distinct = job.traffic.distinct[table] / options.group_ranks
    hottest = np.minimum(_hottest(job)[table], ids)
    moved = Moved(ids, row, outputs * row, np.minimum(distinct, ids), missed, hottest)

    def of(terms: TableTerms) -> FloatArray:
        return moved.seconds(terms, step.sizes)

    forward = of(step.lookup)
    backward = np.zeros_like(forward)
    weights = update_weights(job, step)
    for name, terms in step.update.items():
        backward = backward + weights[name][table] * of(terms)
    return forward, backward


class Moved(NamedTuple):
    """Quantities that a pass moves; arrays [entries], ``missed`` [entries, sizes]."""

    ids: FloatArray
    row: FloatArray
    """Bytes of a row."""
    output_bytes: FloatArray
    distinct: FloatArray
    missed: FloatArray
    hottest: FloatArray
    """Ids of the table's most popular row."""

    @property
    def outputs(self) -> FloatArray:
        """Rows of the outputs."""
        return self.output_bytes / self.row

    def seconds(self, terms: TableTerms, sizes: tuple[float, ...]) -> FloatArray:
        """Seconds of every entry's pass, with caches of ``sizes`` bytes; array [entries].

        Linear in all that the pass moves, but for dispatch that hides behind it.
        """
        knee = dict(terms.missed)
        each = np.array([knee.get(size, 0.0) for size in sizes])
        per_id = terms.id_seconds + terms.byte_seconds * self.row
        per_id = per_id + (self.row + terms.row_bytes) * (self.missed @ each)
        per_distinct = terms.distinct_seconds + terms.distinct_byte_seconds * self.row
        work = (
            self.ids * per_id + self.distinct * per_distinct
            + terms.output_byte_seconds * self.output_bytes + terms.hottest_seconds * self.hottest
            + terms.output_seconds * self.outputs
        )  # fmt: skip
        return np.maximum(terms.seconds, work) if terms.hidden_dispatch else terms.seconds + work


def update_weights(job: Job, step: StepModel) -> dict[str, FloatArray]:
    """Share of each measured optimizer in the update of each table; arrays [tables].

    A table's own optimizer if it was measured. Otherwise linear interpolation between the measured
    optimizers, by the copies of a row that they keep as state, constant beyond them. SGD, which
    adds gradients without first merging those of a row, stands only for itself and for ``none``.
    """
    tables = job.model.tables
    measured = {str(name): terms for name, terms in step.update.items()}
    weights = {name: np.zeros(len(tables)) for name in measured}
    if not job.workload.trains or not measured:
        return weights
    for index, table in enumerate(tables):
        for name, share in stand_ins(job.model.optimizer_of(table), table.dim, list(measured)):
            weights[name][index] = share
    return weights


def stand_ins(optimizer: str, dim: int, measured: list[str]) -> list[tuple[str, float]]:
    """Measured optimizers that stand for one, with their shares (:func:`update_weights`)."""
    optimizer = "sgd" if optimizer == "none" else optimizer
    if optimizer in measured:
        return [(optimizer, 1.0)]
    merging = [name for name in measured if name != "sgd"] or measured
    states = {name: float(STATE_NUMBERS[name].copies(dim)) for name in merging}
    own = float(STATE_NUMBERS[optimizer].copies(dim))
    below = max((n for n in merging if states[n] <= own), key=states.__getitem__, default=None)
    above = min((n for n in merging if states[n] > own), key=states.__getitem__, default=None)
    if below is None or above is None:
        return [(below or above or measured[0], 1.0)]
    share = (own - states[below]) / (states[above] - states[below])
    return [(below, 1.0 - share), (above, share)]


def _hottest(job: Job) -> FloatArray:
    """Ids of each table's most popular row in a step of all ranks; array [tables].

    Row-wise, one rank has that row, and a phase lasts as long as that rank's.
    """
    share = [popularity(table.access, table.rows).shares[0] for table in job.model.tables]
    return np.array(share) * job.traffic.raw_ids * job.ranks


def cache_hits_of(job: Job, sizes: tuple[float, ...]) -> FloatArray:
    """Share of each table's ids that a rank's cache of each size serves; array [tables, sizes].

    Tables are assumed to be spread evenly over the ranks, each row with its optimizer state.
    """
    tables = job.tables
    numbers = tables.state_row + tables.state_column * tables.dim
    row = tables.dim * tables.element + STATE_BYTES * numbers
    streams = [
        Stream(popularity(table.access, table.rows), lookups * job.ranks, bytes_)
        for table, lookups, bytes_ in zip(
            job.model.tables, job.traffic.raw_ids.tolist(), row.tolist(), strict=True
        )
    ]
    return cache_hits(streams, np.array(sizes) * job.ranks)


class Stream(NamedTuple):
    """Lookups of one table, step after step."""

    rows: Popularity
    lookups: float
    """Lookups per step."""
    row_bytes: float
    """Bytes of a cached row."""


def cache_hits(streams: list[Stream], sizes: FloatArray) -> FloatArray:
    """Share of each stream's lookups that one cache shared by all serves; [streams, sizes].

    Che's approximation, one characteristic time T for all: a row is cached if it was looked up
    within the last T steps. With n lookups per step, of which the row gets the share p, the chance
    of that is 1 − exp(−n p T), and T is such that the cached rows fill the cache. If all rows fit,
    every lookup is served.

    References
    ----------
    As in :func:`milp_planner.pricing.hit_ratios.recency_curve`.
    """
    kinds = Counter((id(s.rows), s.lookups, s.row_bytes) for s in streams)
    first = {(id(s.rows), s.lookups, s.row_bytes): s for s in reversed(streams)}
    known = [first[key] for key in kinds]
    if not len(sizes) or not any(s.lookups for s in known):
        return np.ones((len(streams), len(sizes)))
    times = np.array(list(kinds.values()), dtype=np.float64)
    part = np.cumsum([0, *(len(s.rows.counts) for s in known)])
    rate = np.concatenate([s.lookups * s.rows.shares for s in known])
    held = np.concatenate(
        [n * s.row_bytes * s.rows.counts for n, s in zip(times, known, strict=True)]
    )
    asked = np.concatenate([s.rows.counts * s.rows.shares for s in known])
    time = _characteristic_times(rate, held, sizes)
    served = np.add.reduceat(asked * -np.expm1(-np.outer(time, rate)), part[:-1], axis=1)
    place = {key: index for index, key in enumerate(kinds)}
    index: IntArray = np.array([place[id(s.rows), s.lookups, s.row_bytes] for s in streams])
    return np.minimum(served.T[index], 1.0)


def _characteristic_times(rate: FloatArray, held: FloatArray, sizes: FloatArray) -> FloatArray:
    """T of each size by bisection of its logarithm: Σ held · (1 − exp(−rate · T)) = size."""
    middle = -np.log(max(float(rate.max()), 1e-300))
    low, high = np.full(len(sizes), middle - 40.0), np.full(len(sizes), middle + 40.0)
    for _ in range(HALVINGS):
        half = (low + high) / 2
        full = -np.expm1(-np.outer(np.exp(half), rate)) @ held >= sizes
        low, high = np.where(full, low, half), np.where(full, half, high)
    return np.exp(high)
