"""Every option cut into runs of equal shards, and the bytes and seconds of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.table import Table
from milp_planner.pricing import exchange, lookup, storage
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, TableColumns
from milp_planner.pricing.options import WHOLE_ROWS, Choice
from milp_planner.pricing.popularity import rank_factors
from milp_planner.pricing.step import priced_by_step, step_seconds
from milp_planner.pricing.units import FloatArray, IntArray


def offsets(lengths: Sequence[int] | IntArray) -> IntArray:
    """Where each run of the given lengths begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(np.asarray(lengths, dtype=np.int64)))).astype(np.int64)


def shards_of(
    job: Job, choices: Sequence[Choice], columns: OptionColumns
) -> tuple[IntArray, ShardColumns]:
    """Shard entries of every option, and where those of each begin; int64 array [options + 1].

    Rows come from a split that all options of a table with the same number of ranks share; a
    column-wise cut repeats it, the last shard taking the columns that are left. A shard whose rank
    is pinned is an entry of its own.
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
    """Runs of equal shards, in rank order."""

    repeat: IntArray
    """Shards in each run; int64 array [runs]."""
    rows: IntArray
    """Rows of each of them; int64 array [runs]."""
    load: FloatArray
    """Lookups of each of them over the mean of all; float array [runs]."""


def whole(table: Table) -> RowSplit:
    """All rows in one shard."""
    return RowSplit(np.ones(1, np.int64), np.array([table.rows]), np.ones(1))


def torchrec_split(table: Table, ranks: int, dedup_lookups: float) -> RowSplit:
    """TorchRec's blocks of ceil(rows / ranks): full ones, one that may be shorter, empty ones."""
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
    statistics = (table.access, table.rows, ranks, dist_type, dedup_lookups)
    factors = np.array(rank_factors(*statistics, table.index_type))
    if len(factors) == 1:
        return RowSplit(np.ones(1, np.int64), np.array([room]), factors)
    return _runs(np.full(ranks, room), factors)


def _runs(rows: IntArray, load: FloatArray) -> RowSplit:
    change = np.flatnonzero((np.diff(rows) != 0) | (np.diff(load) != 0)) + 1
    starts = np.concatenate(([0], change))
    repeat = np.diff(np.append(starts, len(rows)))
    return RowSplit(repeat, rows[starts], load[starts])


class ShardBytes(NamedTuple):
    """int64 arrays [entries]; see :class:`milp_planner.pricing.options.Entries`."""

    hbm: IntArray
    buffer: IntArray
    ddr: IntArray
    move: IntArray
    incoming: IntArray
    outgoing: IntArray


class Exchanged(NamedTuple):
    """What a shard receives and returns in one step of all ranks; float arrays [entries].

    ``ids`` and ``rows_out`` are means with skew and deduplication, the ``plain`` ones without.
    """

    ids: FloatArray
    rows_out: FloatArray
    plain_ids: FloatArray
    plain_rows_out: FloatArray


def exchanged_by(job: Job, options: OptionColumns, shards: ShardColumns) -> Exchanged:
    """Ids and embeddings of every shard entry; ``options`` holds one row per entry.

    A row-wise shard receives its load's share of all ranks' ids; shards that hold every row
    receive all of them; a replicated table sees its own rank's. Pooled outputs are one per sample
    of every rank (partial sums, row-wise), sequence outputs one an id.
    """
    table, traffic = options.table, job.traffic
    replicated = options.is_sharding("data_parallel")
    senders = np.where(replicated, 1.0, job.ranks / options.group_ranks)
    ids = traffic.ids[table] * senders * shards.load
    plain = traffic.raw_ids[table] * senders
    bags = traffic.outputs[table] * np.where(replicated, 1, job.ranks)
    pooled = job.tables.pooled[table]
    return Exchanged(ids, np.where(pooled, bags, ids), plain, np.where(pooled, bags, plain))


def shard_bytes(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> ShardBytes:
    """HBM, exchange buffer, DDR and moved bytes of every shard entry.

    ``options`` holds one row per entry; a shard without rows needs nothing. On a cluster without
    HBM everything is charged to DDR.
    """
    hbm, ddr, move = _torchrec(job.tables, options, shards)
    dynamic = np.flatnonzero(job.tables.dynamic[options.table])
    if len(dynamic):
        model = job.workload.storage_model
        hbm[dynamic], ddr[dynamic], move[dynamic] = _dynamicemb(
            job.tables, options.at(dynamic), shards.rows[dynamic], model
        )
    inputs, output, buffer = _buffers(job, options, shards, exchanged)
    present = shards.rows > 0
    traffic = np.where(present, inputs, 0), np.where(present, output, 0)
    hbm, buffer = np.where(present, hbm + inputs, 0), np.where(present, buffer, 0)
    ddr = np.where(present, ddr, 0)
    if job.site.cpu_only:
        zero = np.zeros_like(hbm)
        return ShardBytes(zero, zero, ddr + hbm + buffer, move, *traffic)
    return ShardBytes(hbm, buffer, ddr, move, *traffic)


def _buffers(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> tuple[IntArray, IntArray, IntArray]:
    """Input buffer, output, and output buffer at the codec's peak.

    Nothing is encoded on a single rank or for a replicated table. TorchEasyRec knows neither
    skew, nor deduplication, nor the codec.
    """
    ids, rows_out, factor = exchanged.ids, exchanged.rows_out, job.workload.codec_peak_factor
    encoded = ~options.is_sharding("data_parallel") & (job.ranks > 1)
    if job.workload.storage_model == "torcheasyrec":
        dynamic = job.tables.dynamic[options.table]
        ids = np.where(dynamic, exchanged.plain_ids, ids)
        rows_out = np.where(dynamic, exchanged.plain_rows_out, rows_out)
        encoded &= ~dynamic
    element = job.tables.element[options.table]
    output = storage.output_bytes(rows_out, shards.columns, element)
    peak = np.ceil(output * factor).astype(np.int64)
    return storage.input_bytes(ids), output, np.where(encoded, peak, output)


def _torchrec(
    tables: TableColumns, options: OptionColumns, shards: ShardColumns
) -> tuple[IntArray, IntArray, IntArray]:
    """HBM, DDR and moved bytes by TorchRec's formulas."""
    table = options.table
    over, under = tables.state_over[table], tables.state_under[table]
    element = tables.element[table]
    weights = storage.torchrec_weights(shards.rows, shards.columns, element)
    full = weights + storage.torchrec_state(weights, over, under)
    hbm = np.where(options.is_mode("HBM_ONLY"), full, 0)
    ddr = full - hbm
    cached = np.flatnonzero(options.is_mode("CACHING") & ~tables.dynamic[table])
    if len(cached):
        whole = tables.rows[table[cached]], tables.dim[table[cached]]
        shape = shards.rows[cached], shards.columns[cached]
        ratio = options.over[cached], options.under[cached]
        part, index = storage.torchrec_cache(shape, whole, element[cached], ratio)
        hbm[cached] = part + storage.torchrec_state(part, over[cached], under[cached]) + index
    return hbm, ddr, full


def _dynamicemb(
    tables: TableColumns, options: OptionColumns, rows: IntArray, storage_model: str
) -> tuple[IntArray, IntArray, IntArray]:
    """HBM, DDR and moved bytes of dynamicemb shards; an external store takes the cached rows."""
    table = options.table
    runtime = storage_model == "runtime"
    value = (tables.runtime_row if runtime else tables.planner_row)[table]
    tiers = storage.runtime_tiers if runtime else storage.torcheasyrec_tiers
    caching = options.is_mode("CACHING")
    found = tiers(rows, value, tables.bucket[table], (options.over, options.under), caching)
    ddr = np.where(caching & tables.external[table], 0, found.ddr)
    return found.hbm + tables.counter[table], ddr, rows * value


def shard_seconds(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    bandwidth: FloatArray,
    misses: FloatArray,
) -> FloatArray:
    """Seconds a phase; float array [entries, 5]; every argument has one row per shard entry.

    A rank whose row-wise shard is empty still takes part in the exchange; like TorchRec we charge
    it as the others. Inference has no backward phases. ``bandwidth`` is that of the lookup, bytes
    per second; ``misses`` the distinct rows of a step that the shard's cache does not hold.
    """
    table, kernel = options.table, job.profile.kernel
    element, weighted = job.tables.element[table], job.tables.weighted[table]
    whole = options.is_sharding("table_wise", "column_wise", "table_column_wise")
    sent = exchanged.rows_out * shards.columns * job.tables.wire[table]
    kept = exchanged.rows_out * shards.columns * element
    written = np.where(options.is_sharding("data_parallel"), kept, sent)
    row = np.maximum(shards.columns, np.where(whole, kernel.least_columns, 0)) * element
    forward = lookup.forward_seconds(exchanged.ids, written, row, weighted, bandwidth)
    forward *= np.where(whole, lookup.narrow_penalty(shards.columns, kernel), 1.0)
    forward += kernel.launch_seconds
    backward = lookup.backward_seconds(forward, weighted, kernel)
    measured = priced_by_step(job, options)
    if job.profile.step is not None and measured.any():
        ids, rows_out = exchanged.ids, exchanged.rows_out
        there, update = step_seconds(job, job.profile.step, options, shards, ids, rows_out)
        update = update + np.where(weighted, kernel.weighted_multiple, 0.0) * there
        forward = np.where(measured, there, forward)
        backward = np.where(measured & (update > 0), update, backward)
    out, back = _exchange(job, options, shards, exchanged, bandwidth)
    prefetch = lookup.prefetch_seconds(misses, row, job.profile)
    seconds = np.stack([forward, out, backward, back, prefetch], axis=1)
    if job.workload.mode == "inference":
        seconds[:, 2:4] = 0.0
    if not job.workload.prefetch_pipeline:
        seconds[:, 4] = 0.0
    return seconds


def _exchange(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    bandwidth: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Forward and backward exchange; both zero on a single rank but for a dense update."""
    kernel, links, table = job.profile.kernel, job.links, options.table
    replicated, by_all = options.is_sharding("data_parallel"), options.is_sharding("row_wise")
    by_machine = options.is_sharding("table_row_wise", "grid_shard")

    def collective(wire: IntArray) -> FloatArray:
        pooled = job.tables.pooled[table]
        sent = exchanged.rows_out * shards.columns * wire
        held = np.where(pooled, job.traffic.outputs[table] * links.machines, exchanged.rows_out)
        whole = exchange.whole_rows_seconds(sent, links)
        by_rows = exchange.row_wise_seconds(sent, pooled, links)
        across = held * shards.columns * wire
        two_steps = exchange.table_row_wise_seconds(sent, across, pooled, links)
        return np.where(by_machine, two_steps, np.where(by_all, by_rows, whole))

    out, back = (collective(w[table]) for w in (job.tables.wire, job.tables.wire_backward))
    gradients = exchanged.rows_out * shards.columns * job.tables.wire_backward[table]
    copy = exchange.batched_copy_seconds(gradients, bandwidth, kernel.batched_copy_multiple)
    back = back + np.where((by_all | by_machine) & (links.ranks > 1), copy, 0.0)
    size = shards.rows * shards.columns * job.tables.element[table]
    update = exchange.data_parallel_seconds(size, bandwidth, kernel.dense_update_multiple, links)
    return np.where(replicated, 0.0, out), np.where(replicated, update, back)
