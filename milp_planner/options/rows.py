"""How a table's rows, and the load on them, fall on the ranks they are split over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.costs.access import rank_factors
from milp_planner.costs.units import FloatArray, IntArray
from milp_planner.inputs.table import Table


class RowSplit(NamedTuple):
    """Runs of equal shards, in rank order.

    Attributes
    ----------
    repeat : int64 array [runs]
        Shards in each run.
    rows : int64 array [runs]
        Rows of each of them.
    load : float array [runs]
        Lookups of each of them over the mean of all.
    """

    repeat: IntArray
    rows: IntArray
    load: FloatArray


def whole(table: Table) -> RowSplit:
    """All rows in one shard."""
    return RowSplit(np.ones(1, np.int64), np.array([table.rows]), np.ones(1))


def torchrec_split(table: Table, ranks: int, dedup_lookups: float) -> RowSplit:
    """TorchRec's blocks of ceil(rows / ranks): full ones, one that may be shorter, empty ones.

    Parameters
    ----------
    table : Table
    ranks : int
        Ranks the rows are split over.
    dedup_lookups : float
        Ids of one rank's batch under deduplication, else 0.
    """
    block = -(-table.rows // ranks)
    factors = rank_factors(table.access, table.rows, ranks, "continuous", dedup_lookups)
    if len(factors) > 1:
        rows = np.clip(table.rows - block * np.arange(ranks, dtype=np.int64), 0, block)
        return _runs(rows, np.array(factors))
    full, part = divmod(table.rows, block)
    sizes = [(full, block), (1, part)] if part else [(full, block)]
    empty = ranks - sum(count for count, _ in sizes)
    runs = np.array([*sizes, (empty, 0)] if empty else sizes, dtype=np.int64)
    return RowSplit(runs[:, 0], runs[:, 1], np.full(len(runs), factors[0]))


def dynamicemb_split(table: Table, ranks: int, dist_type: str, dedup_lookups: float) -> RowSplit:
    """Equal shards: every rank is given room for ceil(rows / ranks) rows, whatever the rule."""
    room = -(-table.rows // ranks)
    factors = np.array(rank_factors(table.access, table.rows, ranks, dist_type, dedup_lookups))
    if len(factors) == 1:
        return RowSplit(np.ones(1, np.int64), np.array([room]), factors)
    return _runs(np.full(ranks, room), factors)


def _runs(rows: IntArray, load: FloatArray) -> RowSplit:
    change = np.flatnonzero((np.diff(rows) != 0) | (np.diff(load) != 0)) + 1
    starts = np.concatenate(([0], change))
    repeat = np.diff(np.append(starts, len(rows)))
    return RowSplit(repeat, rows[starts], load[starts])
