"""Cut every option into runs of equal shards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from milp_planner.costs.units import IntArray
from milp_planner.options.choice import WHOLE_ROWS, Choice
from milp_planner.options.columns import OptionColumns, ShardColumns
from milp_planner.options.job import Job
from milp_planner.options.rows import RowSplit, dynamicemb_split, torchrec_split, whole


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
