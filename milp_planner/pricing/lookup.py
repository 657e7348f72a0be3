"""Time a rank spends reading rows and writing outputs, and time to prefetch rows into a cache.

Everything is float64 seconds over arrays of shards; bandwidths are bytes per second.

References
----------
TorchRec 1.8.0, ``planner/estimator`` (compute, prefetch) and ``planner/constants.py`` (bandwidths,
multipliers); dynamicemb shards the same in alibaba/TorchEasyRec, ``tzrec/utils/plan_util.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.inputs.cluster import ID_BYTES
from milp_planner.pricing.hit_ratios import (
    Source,
    has_statistics,
    hit_ratios,
    policy_of,
    unique_hit_ratios,
)
from milp_planner.pricing.job import Job, OptionColumns
from milp_planner.pricing.profile import EfficiencyCurve, Kernel, Profile
from milp_planner.pricing.runtimes.registry import by_runtime, runtimes
from milp_planner.pricing.units import BoolArray, FloatArray, Numbers, Places


def tiered_bandwidth(profile: Profile, x_eff: FloatArray) -> FloatArray:
    """Bandwidth of a table that lives in two tiers: x_eff · HBM + (1 − x_eff) · host link."""
    return x_eff * profile.hbm + (1.0 - x_eff) * profile.host_link


def curve_bandwidth(profile: Profile, curve: EfficiencyCurve, argument: FloatArray) -> FloatArray:
    """Bandwidth of a tiered table on a curve, bytes per second, before any divisor.

    ``argument`` is the variable that the curve is given over. If that is the hit ratio h, times add
    up, so the time of a byte is linear between points: with points at 0 and 1 only, h · path + (1 −
    h) · host. Other curves are linear in x_eff. Constant outside the points.
    """
    points = np.array(curve.points, dtype=np.float64)
    if curve.over != "hit_ratio":
        return tiered_bandwidth(profile, np.interp(argument, points[:, 0], points[:, 1]))
    at = tiered_bandwidth(profile, points[:, 1])
    return np.asarray(1.0 / np.interp(argument, points[:, 0], 1.0 / at))


def narrow_penalty(columns: Numbers, kernel: Kernel) -> FloatArray:
    """Factor by which rows of few columns waste a thread block (TorchRec: 1.15, 1.75)."""
    limits = np.array([limit for limit, _ in kernel.narrow_penalties])
    factors = np.array([*(factor for _, factor in kernel.narrow_penalties), 1.0])
    return factors[np.searchsorted(limits, columns, side="right")]


def forward_seconds(
    ids: FloatArray,
    output_bytes: FloatArray,
    row_bytes: Numbers,
    weighted: BoolArray,
    bandwidth: FloatArray,
) -> FloatArray:
    """Forward lookup of a shard: (input read + rows read + output written) / bandwidth.

    An id takes 8 bytes, twice that with weights; ``row_bytes`` is one row as read, ``output_bytes``
    all that is written; float arrays.
    """
    read = np.ceil(ids * 8) * np.where(weighted, 2, 1)
    return (read + ids * row_bytes + output_bytes) / bandwidth


def backward_seconds(
    forward: FloatArray, weighted: BoolArray, state: FloatArray, kernel: Kernel
) -> FloatArray:
    """Backward lookup: 2 · forward, plus 1.1 · forward for the gradient of the weights.

    ``state``: copies of a row that the optimizer of a dynamicemb table keeps as state, 0 for other
    tables; each adds the profile's multiple of the update.
    """
    update = kernel.backward_multiple * (1.0 + kernel.dynamicemb_state_multiple * state)
    return forward * (update + np.where(weighted, kernel.weighted_multiple, 0.0))


class Hits(NamedTuple):
    """How an option's HBM tier serves lookups; arrays [options]."""

    ratio: FloatArray
    """Share of the lookups it serves; without access statistics, the share of the rows it holds;
    float array."""
    unique: FloatArray
    """Share of a step's distinct rows that a cache holds, if they are prefetched; otherwise its
    share of all rows; float array."""
    cover: FloatArray
    """Rows it holds over the distinct rows of a step; float array."""
    known: BoolArray
    """Whether the table has access statistics; bool array."""
    source: list[Source]
    """Source of each ratio; ``none`` for modes of one tier, and if no price depends on it."""
    behind: FloatArray
    """Share of a step's distinct rows that HBM or, before SSD, an L2 cache in host memory holds;
    float array."""

    def at(self, index: Places) -> Hits:
        """The same gathered by option index (one row per shard entry)."""
        return Hits(
            self.ratio[index], self.unique[index], self.cover[index], self.known[index],
            [], self.behind[index],
        )  # fmt: skip


def hits_of(job: Job, columns: OptionColumns) -> Hits:
    """Hit ratio, batch cover and whether statistics exist, of every option."""
    tables = job.model.tables
    ratio = _held(job, columns)
    distinct = np.maximum(job.traffic.distinct, 1.0)
    cover = ratio * (job.tables.rows / distinct)[columns.table]
    stats = np.array([has_statistics(t.access) for t in tables], dtype=np.bool_)
    served, unique = ratio.copy(), ratio.copy()
    both = _with_l2(job, columns, ratio)
    behind = both.copy()
    source: list[Source] = ["none"] * len(ratio)
    rooms = runtimes()
    starts = np.searchsorted(columns.table, np.arange(len(tables) + 1))
    for mode in _modes_that_ask(job):
        tiered = columns.is_mode(mode)
        for index in np.flatnonzero(stats):
            span = np.arange(starts[index], starts[index + 1])[
                tiered[starts[index] : starts[index + 1]]
            ]
            if len(span):
                grid, back = np.unique(ratio[span], return_inverse=True)
                policy = policy_of(
                    tables[index], mode, float(job.traffic.raw_ids[index]) * job.ranks
                )
                access, rows = tables[index].access, tables[index].rows
                found = hit_ratios(access, rows, grid, policy)
                served[span] = found.values[back]
                if rooms[columns.runtime[span[0]]].fetches_ahead(job, mode):
                    unique[span] = unique_hit_ratios(access, rows, grid, policy)[back]
                if mode == "SSD":
                    sizes, again = np.unique(both[span], return_inverse=True)
                    behind[span] = unique_hit_ratios(access, rows, sizes, policy)[again]
                for option, place in zip(span.tolist(), back.tolist(), strict=True):
                    source[option] = found.sources[place]
    return Hits(served, unique, cover, stats[columns.table], source, behind)


def _with_l2(job: Job, columns: OptionColumns, ratio: FloatArray) -> FloatArray:
    """Share of a shard's rows that HBM and L2 hold: rows that leave HBM enter L2."""
    table, tables = columns.table, job.tables
    row = columns.width * tables.element[table] + ID_BYTES
    block = tables.rows[table] / columns.group_ranks
    return np.minimum(ratio + tables.l2[table] // row / block, 1.0)


def _modes_that_ask(job: Job) -> tuple[str, ...]:
    """Modes whose prices depend on hit ratios."""
    if job.workload.cost_model != "law":
        return "CACHING", "HYBRID", "HBM_ONLY", "SSD"
    return ("CACHING", "HYBRID", "SSD") if job.profile.hybrid.follows_hits else ("CACHING", "SSD")


def _held(job: Job, columns: OptionColumns) -> FloatArray:
    """Share of the rows that HBM has slots for, as each option's runtime rounds it."""
    found = np.zeros(len(columns.table))
    for runtime, at in by_runtime(columns):
        found[at] = runtime.held(job, columns.at(at))
    return found


def between(
    profile: Profile, curve: EfficiencyCurve, options: OptionColumns, hits: Hits
) -> FloatArray:
    """Bandwidth of each option on a curve, or with x_eff = hit ratio if the profile says so."""
    ratio = options.over / options.under
    argument = {"cache_ratio": ratio, "hit_ratio": hits.ratio, "batch_cover": hits.cover}
    fitted = curve_bandwidth(profile, curve, argument[curve.over])
    if curve.given_statistics == "hit_ratio":
        return np.where(hits.known, tiered_bandwidth(profile, hits.ratio), fitted)
    return fitted
