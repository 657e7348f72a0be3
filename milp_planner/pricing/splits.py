"""How a runtime cuts the rows of a table, and how the ids of a step fall on the parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.inputs.table import Table
from milp_planner.pricing.popularity import hot_share, rank_factors, skewed
from milp_planner.pricing.units import FloatArray, IntArray


class Batch(NamedTuple):
    """The numbers that decide how the ids of a step fall on ranks."""

    dedup_lookups: float
    """Ids of one rank's batch if each distinct id is exchanged once, else 0."""
    ids: float
    """Ids of the global batch."""
    ids_a_sample: float
    distinct: float = 0.0
    """Distinct ids among ``dedup_lookups``."""


class RowSplit(NamedTuple):
    """Runs of equal shards, in rank order."""

    repeat: IntArray
    """Shards in each run; int64 array [runs]."""
    rows: IntArray
    """Rows of each of them; int64 array [runs]."""
    load: FloatArray
    """Lookups of each of them over the mean of all, on average; float array [runs]."""
    peak: FloatArray
    """The same in the worst batch; float array [runs]."""


def whole(table: Table) -> RowSplit:
    """All rows in one shard."""
    return RowSplit(np.ones(1, np.int64), np.array([table.rows]), np.ones(1), np.ones(1))


def torchrec_split(table: Table, ranks: int, batch: Batch) -> RowSplit:
    """TorchRec's blocks of ceil(rows / ranks): full ones, one that may be shorter, empty ones."""
    block = -(-table.rows // ranks)
    load, peak = _loads(table, ranks, "continuous", batch, block)
    if len(load) > 1:
        rows = np.clip(table.rows - block * np.arange(ranks, dtype=np.int64), 0, block)
        return _runs(rows, load, peak)
    full, part = divmod(table.rows, block)
    sizes = [(full, block), (1, part)] if part else [(full, block)]
    empty = ranks - sum(count for count, _ in sizes)
    runs = np.array([*sizes, (empty, 0)] if empty else sizes, dtype=np.int64)
    each = np.ones(len(runs))
    return RowSplit(runs[:, 0], runs[:, 1], load[0] * each, peak[0] * each)


def dynamicemb_split(table: Table, ranks: int, dist_type: str, batch: Batch) -> RowSplit:
    """Equal shards: every rank has room for ceil(rows / ranks) rows under any rule."""
    room = -(-table.rows // ranks)
    load, peak = _loads(table, ranks, dist_type, batch, table.rows)
    if len(load) == 1:
        return RowSplit(np.ones(1, np.int64), np.array([room]), load, peak)
    return _runs(np.full(ranks, room), load, peak)


def _loads(
    table: Table, ranks: int, dist_type: str, batch: Batch, most: int
) -> tuple[FloatArray, FloatArray]:
    """Lookups of each rank over the mean, on average and in the worst batch.

    The worst batch is that of :func:`worst_batch`, or of the table's ``peak_skew`` if that is more:
    any rank may be its busiest. ``most``: different rows that one rank may hold.
    """
    access, ids = table.access, table.index_type if dist_type != "continuous" else "int64"
    load = np.array(rank_factors(access, table.rows, ranks, dist_type, batch.dedup_lookups, ids))
    return load, np.maximum(
        worst_batch(load, ranks, batch), stated_batch(table, ranks, batch, most)
    )


def stated_batch(table: Table, ranks: int, batch: Batch, most: int) -> float:
    """Lookups of the busiest rank over the mean in the batch that ``peak_skew`` states, or 0.

    Its share s of the ids is that of one hot row (:func:`~milp_planner.pricing.popularity.skewed`).
    Every rank drops its own equal ids before it sends them, so of n ids, d of them different, the
    busiest rank receives at most min(s n, d, its rows), over a mean of d/P: s P if s was measured
    after deduplication, else P min(s n, d, rows)/d.

    References
    ----------
    TorchRec 1.8.0, ``distributed/embedding.py``, ``ShardedEmbeddingCollection._dedup_indices``:
    unique ids of each feature of a rank's own batch, before its all-to-all.
    """
    stated = table.access.peak_skew
    if stated is None:
        return 0.0
    share = hot_share(skewed(stated, table.rows), ranks)
    if not batch.distinct or stated.deduplication == "after":
        return ranks * share
    different = min(share * batch.dedup_lookups, batch.distinct, most)
    return ranks * different / batch.distinct


def worst_batch(load: FloatArray, ranks: int, batch: Batch) -> FloatArray:
    """Lookups of each rank over the mean in the worst batch, if it was not measured.

    Samples are independent; at worst all ids of a sample go to one rank. A rank with m ids on
    average then has a standard deviation of at most sqrt(m · ids a sample), and six of them are
    added, which a normal variable exceeds once in 10⁹ steps. Never more than all ids.
    """
    mean = np.maximum(load * batch.ids / ranks, 1e-9)
    worst = load * (1 + DEVIATIONS * np.sqrt(batch.ids_a_sample / mean))
    return np.asarray(np.minimum(worst, np.maximum(load, float(ranks))))


DEVIATIONS = 6.0
"""Standard deviations between an average batch and the worst."""


def _runs(rows: IntArray, load: FloatArray, peak: FloatArray) -> RowSplit:
    alike = (np.diff(rows) == 0) & (np.diff(load) == 0) & (np.diff(peak) == 0)
    starts = np.concatenate(([0], np.flatnonzero(~alike) + 1))
    repeat = np.diff(np.append(starts, len(rows)))
    return RowSplit(repeat, rows[starts], load[starts], peak[starts])
