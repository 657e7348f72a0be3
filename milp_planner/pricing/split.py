"""Cut every option into runs of equal shards, with the share of the lookups each serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.table import Table
from milp_planner.pricing.access import rank_factors
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.options import WHOLE_ROWS, Choice
from milp_planner.pricing.units import FloatArray, IntArray


def offsets(lengths: Sequence[int] | IntArray) -> IntArray:
    """Where each run of the given lengths begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, dtype=np.int64)))).astype(np.int64)


def shards_of(
    job: Job, choices: Sequence[Choice], columns: OptionColumns
) -> tuple[IntArray, ShardColumns]:
    """Shard entries of every option.

    Rows come from a split that all options of a table with the same number of ranks share; a
    column-wise cut repeats it, the last shard taking the columns that are left. A shard whose rank
    is pinned is an entry of its own.

    Returns
    -------
    first : int64 array [options + 1]
        Entries of option o are ``first[o] … first[o+1] − 1``.
    shards : ShardColumns
    """
    splits, which = _splits(job, choices, columns)
    lengths = np.array([len(split.rows) for split in splits], dtype=np.int64)
    width = np.array([c.width for c in choices], dtype=np.int64)
    count = np.array([c.columns for c in choices], dtype=np.int64)
    single = np.array([c.pinned is not None for c in choices], dtype=np.bool_)
    by_columns = columns.is_sharding(*WHOLE_ROWS)
    last = job.tables.dim[columns.table] - width * (count - 1)
    uneven = by_columns & (last != width)
    cuts = np.where(single, count, np.where(uneven, 2, 1))
    times = np.where(by_columns, cuts, lengths[which])
    first = offsets(times)
    option = np.repeat(np.arange(len(choices)), times)
    inside = np.arange(len(option)) - first[option]
    source = offsets(lengths)[which[option]] + np.where(by_columns[option], 0, inside)
    final = uneven[option] & (inside == times[option] - 1)
    runs = np.where(final | single[option], 1, count[option] - 1)
    repeat = np.where(uneven[option], runs, _joined([split.repeat for split in splits])[source])
    return first, ShardColumns(
        option=option,
        repeat=np.where(times[option] == 1, 1, repeat),
        rows=_joined([split.rows for split in splits])[source],
        columns=np.where(final, last[option], width[option]),
        load=np.concatenate([np.empty(0), *(split.load for split in splits)])[source],
    )


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _splits(
    job: Job, choices: Sequence[Choice], columns: OptionColumns
) -> tuple[list[RowSplit], IntArray]:
    """Row splits, each computed once, and which one every option uses."""
    splits: list[RowSplit] = []
    known: dict[tuple[int, int, str | None], int] = {}
    which = np.empty(len(choices), dtype=np.int64)
    tables, ranks = columns.table.tolist(), columns.group_ranks.tolist()
    for option, choice in enumerate(choices):
        key = (tables[option], ranks[option], choice.dist_type)
        index = known.get(key)
        if index is None:
            index = known[key] = len(splits)
            splits.append(_split(job, *key))
        which[option] = index
    return splits, which


def _split(job: Job, index: int, ranks: int, dist_type: str | None) -> RowSplit:
    table, lookups = job.model.tables[index], float(job.traffic.dedup_lookups[index])
    if dist_type is not None:
        return dynamicemb_split(table, ranks, dist_type, lookups)
    return whole(table) if ranks == 1 else torchrec_split(table, ranks, lookups)


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
