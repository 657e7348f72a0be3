"""Every option cut into runs of equal shards, the bytes of each, and those of chosen options."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.pricing import storage
from milp_planner.pricing.buffers import Exchanged, exchange_entries, exchanged_by
from milp_planner.pricing.entries import MOMENTS, SHARD_NAMES, alive
from milp_planner.pricing.enumeration import enumerations_of
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, job_of, option_columns
from milp_planner.pricing.options import WHOLE_ROWS, Choice
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.replicas import gathered
from milp_planner.pricing.runtimes.registry import by_runtime, named
from milp_planner.pricing.runtimes.room import Rows
from milp_planner.pricing.splits import Batch, RowSplit
from milp_planner.pricing.units import FloatArray, IntArray

ROWS = ("weights", "state", "metadata", "old_keys", "cache_index")
"""Entries of the ledger that a runtime's rows take."""


def offsets(lengths: Sequence[int] | IntArray) -> IntArray:
    """Where each run of the given lengths begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, dtype=np.int64)))).astype(np.int64)


def shards_of(
    job: Job, choices: Sequence[Choice], columns: OptionColumns
) -> tuple[IntArray, ShardColumns]:
    """Shard entries of every option, and where those of each begin; int64 array [options + 1].

    All options of a table over the same number of ranks share one split of its rows; a column-wise
    cut repeats it, and the last shard takes the remaining columns. A shard whose rank is pinned is
    an entry of its own; a grid on listed ranks repeats it for every column slice.
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
    listed = np.array([c.members is not None for c in choices], dtype=np.bool_)
    laps = np.where(listed & (lengths[which] > 1), count, 1)
    times = np.where(by_columns, cuts, lengths[which] * laps)
    first = offsets(times)
    option = np.repeat(np.arange(len(choices)), times)
    inside = np.arange(len(option)) - first[option]
    row = np.where(by_columns[option], 0, inside % lengths[which[option]])
    source = offsets(lengths)[which[option]] + row
    final = uneven[option] & (inside == times[option] - 1)
    runs = np.where(final | single[option], 1, count[option] - 1)
    repeat = np.where(uneven[option], runs, _joined([split.repeat for split in splits])[source])
    return first, ShardColumns(
        option=option,
        repeat=np.where(times[option] == 1, 1, repeat),
        rows=_joined([split.rows for split in splits])[source],
        columns=np.where(final, last[option], width[option]),
        load=np.concatenate([np.empty(0), *(split.load for split in splits)])[source],
        peak=np.concatenate([np.empty(0), *(split.peak for split in splits)])[source],
    )


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _splits(
    job: Job, choices: Sequence[Choice], columns: OptionColumns
) -> tuple[list[RowSplit], IntArray]:
    """Row splits, each computed once, and which one every option uses."""
    splits: list[RowSplit] = []
    known: dict[tuple[int, int, str | None, str], int] = {}
    which = np.empty(len(choices), dtype=np.int64)
    tables, ranks = columns.table.tolist(), columns.group_ranks.tolist()
    for option, choice in enumerate(choices):
        key = (tables[option], ranks[option], choice.dist_type, choice.runtime)
        index = known.get(key)
        if index is None:
            index = known[key] = len(splits)
            splits.append(_split(job, choice, tables[option], ranks[option]))
        which[option] = index
    return splits, which


def _split(job: Job, choice: Choice, index: int, ranks: int) -> RowSplit:
    lookups, ids = float(job.traffic.dedup_lookups[index]), float(job.traffic.ids[index])
    distinct = ids if lookups else 0.0
    batch = Batch(lookups, ids * job.ranks, ids / job.workload.batch_per_rank, distinct)
    return named(choice.runtime).split(job.model.tables[index], ranks, choice.dist_type, batch)


class ShardBytes(NamedTuple):
    """int64 arrays [entries]; see :class:`milp_planner.pricing.options.Entries`."""

    ledger: IntArray
    ddr: IntArray
    ssd: IntArray
    move: IntArray
    incoming: IntArray
    outgoing: IntArray


def shard_bytes(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> ShardBytes:
    """The ledger, DDR and moved bytes of every shard entry.

    ``options`` holds one row per entry; a shard without rows needs nothing. On a cluster without
    HBM everything is charged to DDR, the exchange at its fullest moment.
    """
    rows, present = _rows(job, options, shards), shards.rows > 0
    entries = rows.hbm | _stashed(options, rows.hbm["weights"])
    entries |= gathered(job, options, shards, entries["weights"])
    entries |= exchange_entries(job, options, shards, exchanged)
    if job.workload.storage_model == "runtime" and job.workload.trains:
        entries |= _dense_gradients(options, entries["weights"])
    ledger = np.stack([entries.get(name, np.zeros_like(rows.ddr)) for name in SHARD_NAMES], axis=1)
    ledger[~present] = 0
    copied = np.where(options.is_mode("CACHING"), 0, entries["stashed"])  # caches have their rows
    on_host = rows.ddr + 2 * copied + staged_bytes(job.model, rows.move, rows.ssd)
    ddr, ssd = np.where(present, on_host, 0), np.where(present, rows.ssd, 0)
    element = job.tables.output[options.table]
    sent = storage.output_bytes(exchanged.rows_out, shards.columns, element)
    traffic = [np.where(present, n, 0) for n in (storage.input_bytes(exchanged.ids), sent)]
    if job.site.cpu_only:
        fullest = np.max([ledger @ alive(moment) for moment in MOMENTS], axis=0)
        return ShardBytes(np.zeros_like(ledger), ddr + fullest, ssd, rows.move, *traffic)
    return ShardBytes(ledger, ddr, ssd, rows.move, *traffic)


def _rows(job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
    """What rows take in each option's runtime, or as that runtime's planner counts them."""
    empty = np.zeros_like(shards.rows)
    found = Rows({name: empty.copy() for name in ROWS}, empty.copy(), empty.copy(), empty.copy())
    for runtime, at in by_runtime(options):
        count = runtime.rows if job.workload.storage_model == "runtime" else runtime.planner_rows
        own = count(job, options.at(at), shards.at(at))
        for name, amount in own.hbm.items():
            found.hbm[name][at] = amount
        found.ddr[at], found.ssd[at], found.move[at] = own.ddr, own.ssd, own.move
    return found


def _stashed(options: OptionColumns, weights: IntArray) -> dict[str, IntArray]:
    """Weights of stashed shards, as an entry that is absent in the dense part.

    They take twice their bytes of host memory, as pinned blocks are rounded up to powers of two
    (TorchRec 1.9.2, ``distributed/memory_stashing.py``, PyTorch's CachingHostAllocator) and which
    tables share a block is up to TorchRec.
    """
    stashed = weights * options.stash
    return {"stashed": stashed, "weights": weights - stashed}


def _dense_gradients(options: OptionColumns, weights: IntArray) -> dict[str, IntArray]:
    """Gradients of replicas, and the bucket in which they are summed up."""
    replicated = np.where(options.is_sharding("data_parallel"), weights, 0)
    return {"gradient_bucket": replicated, "dense_gradients": replicated}


def staged_bytes(model: Model, move: IntArray, ssd: IntArray) -> IntArray:
    """Host memory that a staged checkpoint takes: a copy of all rows and state of a shard.

    Rows on SSD are assumed to stay there.

    References
    ----------
    PyTorch 2.13, ``torch.distributed.checkpoint.async_save``: the state is staged on the CPU first.
    """
    return np.where(ssd > 0, 0, move) * model.stages


FOLLOW_ROWS = ("output", "send_buffer", "encoding", "gradients")
"""Entries proportional to a shard's load if its table returns an embedding for each id; the ids,
and a prefetch's buffers for them, always are."""


def bytes_job(model: Model, cluster: Cluster, profile: Profile) -> Job:
    """A job for computing bytes only, without bandwidths."""
    nowhere = Links(
        inf, inf, inf, inf, inf, inf, groups=len(cluster.row_groups), ranks=cluster.num_ranks
    )
    return job_of(model, cluster, profile, nowhere)


class Held(NamedTuple):
    """Shard entries of one option per table; rows are entries, in the order of the tables."""

    first: IntArray
    """Rows of table t are ``first[t] … first[t+1] − 1``; int64 array [tables + 1]."""
    ledger: IntArray
    """As :attr:`milp_planner.pricing.options.Entries.ledger`."""
    ddr: IntArray
    """Bytes of DDR, a staged checkpoint among them; int64 array [entries]."""
    staged: IntArray
    """The part of ``ddr`` that only a checkpoint takes; int64 array [entries]."""
    ssd: IntArray
    peak: FloatArray
    """Lookups over the mean of all shards in the worst batch, float array [entries]."""
    follows: IntArray
    """The part of the ledger proportional to ``peak``; same shape as ``ledger``."""


def held_by(model: Model, cluster: Cluster, profile: Profile, names: Sequence[str]) -> Held | None:
    """The bytes of the named options, one per table; None if a table does not offer its option.

    Parameters
    ----------
    model : Model
    cluster : Cluster
    profile : Profile
    names : sequence of str
        The chosen option of every table.
    """
    legal = enumerations_of(model, cluster)
    if any(name not in each.names for name, each in zip(names, legal, strict=True)):
        return None
    choices = [
        each.choices[each.names.index(name)] for name, each in zip(names, legal, strict=True)
    ]
    columns = option_columns(choices, cluster.num_ranks, range(len(choices)))
    job = bytes_job(model, cluster, profile)
    first, shards = shards_of(job, choices, columns)
    options = columns.at(shards.option)
    bytes_ = shard_bytes(job, options, shards, exchanged_by(job, options, shards))
    split = options.group_ranks > 1
    rows = split & ~job.tables.pooled[options.table]
    follows = np.zeros_like(bytes_.ledger)
    ids = [("inputs", split), ("prefetch", split)]
    for name, where in (*ids, *((name, rows) for name in FOLLOW_ROWS)):
        column = SHARD_NAMES.index(name)
        follows[:, column] = bytes_.ledger[:, column] * where
    staged = staged_bytes(model, bytes_.move, bytes_.ssd) * (shards.rows > 0)
    return Held(first, bytes_.ledger, bytes_.ddr, staged, bytes_.ssd, shards.peak, follows)
