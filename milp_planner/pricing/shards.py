"""Every option cut into runs of equal shards, and the bytes and seconds of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.table import Table
from milp_planner.pricing import exchange, lookup, storage
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, TableColumns
from milp_planner.pricing.key_value import Fetched, in_store, store_bytes
from milp_planner.pricing.ledger import (
    MOMENTS,
    SHARD_ENTRIES,
    SHARD_NAMES,
    alive,
    batches_in_flight,
    prefetch_bytes,
    send_share,
)
from milp_planner.pricing.options import WHOLE_ROWS, Choice
from milp_planner.pricing.popularity import rank_factors
from milp_planner.pricing.replicas import shard_rows
from milp_planner.pricing.step import priced_by_step, step_seconds
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, ceil_div


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
    ids = float(job.traffic.ids[index])
    batch = Batch(lookups, ids * job.ranks, ids / job.workload.batch_per_rank)
    if dist_type is not None:
        return dynamicemb_split(table, ranks, dist_type, batch)
    if table.kind == "hugectr":
        return hugectr_split(table, ranks, batch)
    return whole(table) if ranks == 1 else torchrec_split(table, ranks, batch)


class Batch(NamedTuple):
    """The numbers that decide how the ids of a step fall on ranks."""

    dedup_lookups: float
    """Ids of one rank's batch if each distinct id is exchanged once, else 0."""
    ids: float
    """Ids of the global batch."""
    ids_a_sample: float


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
    load, peak = _loads(table, ranks, "continuous", batch)
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
    load, peak = _loads(table, ranks, dist_type, batch)
    if len(load) == 1:
        return RowSplit(np.ones(1, np.int64), np.array([room]), load, peak)
    return _runs(np.full(ranks, room), load, peak)


def hugectr_split(table: Table, ranks: int, batch: Batch) -> RowSplit:
    """Equal shards: row i belongs to part i mod parts; every part is priced as the hottest."""
    load, peak = _loads(table, ranks, "roundrobin", batch)
    rows = np.array([-(-table.rows // ranks)])
    return RowSplit(np.ones(1, np.int64), rows, load.max(keepdims=True), peak.max(keepdims=True))


def _loads(table: Table, ranks: int, dist_type: str, batch: Batch) -> tuple[FloatArray, FloatArray]:
    """Lookups of each rank over the mean, on average and in the worst batch.

    The worst batch is that of the table's ``peak_skew``, or else of :func:`worst_batch`.
    """
    access, ids = table.access, table.index_type if dist_type != "continuous" else "int64"
    statistics = (table.rows, ranks, dist_type, batch.dedup_lookups, ids)
    load = np.array(rank_factors(access, *statistics))
    if access.peak_skew is None:
        return load, worst_batch(load, ranks, batch)
    worst = access.model_copy(update={"measured_skew": access.peak_skew})
    peak = np.array(rank_factors(worst, *statistics))
    even = max(len(load), len(peak))  # a measured skew is one factor for all ranks
    load, peak = (np.broadcast_to(each, even) for each in (load, peak))
    return load, np.maximum(load, peak)


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


class ShardBytes(NamedTuple):
    """int64 arrays [entries]; see :class:`milp_planner.pricing.options.Entries`."""

    ledger: IntArray
    ddr: IntArray
    ssd: IntArray
    move: IntArray
    incoming: IntArray
    outgoing: IntArray


class Exchanged(NamedTuple):
    """What a shard receives and returns in one step of all ranks; float arrays [entries].

    ``ids`` and ``rows_out`` are means with skew and deduplication, the ``peak`` ones those of the
    worst batch, the ``plain`` ones without either.
    """

    ids: FloatArray
    rows_out: FloatArray
    peak_ids: FloatArray
    peak_rows_out: FloatArray
    plain_ids: FloatArray
    plain_rows_out: FloatArray


def exchanged_by(job: Job, options: OptionColumns, shards: ShardColumns) -> Exchanged:
    """Ids and embeddings of every shard entry; ``options`` holds one row per entry.

    A row-wise shard receives its load's share of all ranks' ids; shards that hold every row receive
    all of them; a replicated table sees its own rank's. Pooled outputs are one per sample of every
    rank (partial sums, row-wise), sequence outputs one per id.
    """
    table, traffic = options.table, job.traffic
    replicated = options.is_sharding("data_parallel")
    senders = np.where(replicated, 1.0, job.ranks / options.group_ranks)
    ids, worst = (traffic.ids[table] * senders * each for each in (shards.load, shards.peak))
    plain = traffic.raw_ids[table] * senders
    bags = traffic.outputs[table] * np.where(replicated, 1, job.ranks)
    pooled = job.tables.pooled[table]
    out, most, raw = (np.where(pooled, bags, each) for each in (ids, worst, plain))
    return Exchanged(ids, out, worst, most, plain, raw)


def shard_bytes(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> ShardBytes:
    """The ledger, DDR and moved bytes of every shard entry.

    ``options`` holds one row per entry; a shard without rows needs nothing. On a cluster without
    HBM everything is charged to DDR, the exchange at its fullest moment.
    """
    counted = _fbgemm if job.workload.storage_model == "runtime" else _torchrec
    ledger, ddr, move = counted(job.tables, options, shards)
    ssd = _key_value(job, options, shards, ledger, ddr)
    ddr = ddr + _stash(options, ledger)
    dynamic = np.flatnonzero(job.tables.dynamic[options.table])
    if len(dynamic):
        model = job.workload.storage_model
        ledger[dynamic], ddr[dynamic], move[dynamic] = _dynamicemb(
            job.tables, options.at(dynamic), shards.rows[dynamic], model
        )
    shard_rows(job, options, shards, ledger)
    ddr = ddr + staged_bytes(job.model, move, ssd)
    _exchange_entries(job, options, shards, exchanged, ledger)
    ledger[shards.rows <= 0] = 0
    ddr = np.where(shards.rows > 0, ddr, 0)
    sent = storage.output_bytes(
        exchanged.rows_out, shards.columns, job.tables.output[options.table]
    )
    present = shards.rows > 0
    traffic = [np.where(present, n, 0) for n in (storage.input_bytes(exchanged.ids), sent)]
    if job.site.cpu_only:
        fullest = np.max([ledger @ alive(SHARD_ENTRIES, moment) for moment in MOMENTS], axis=0)
        return ShardBytes(np.zeros_like(ledger), ddr + fullest, ssd, move, *traffic)
    return ShardBytes(ledger, ddr, ssd, move, *traffic)


def _stash(options: OptionColumns, ledger: IntArray) -> IntArray:
    """Move weights of stashed shards to the entry that is absent in the dense part.

    Returns
    -------
    int64 array [entries]
        Host memory for them: twice their bytes, as pinned blocks are rounded up to powers of two
        (TorchRec 1.9.2, ``distributed/memory_stashing.py``, PyTorch's CachingHostAllocator) and
        which tables share a block is up to TorchRec.
    """
    put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
    put["stashed"][:] = put["weights"] * options.stash
    put["weights"][:] -= put["stashed"]
    return 2 * put["stashed"]


def staged_bytes(model: Model, move: IntArray, ssd: IntArray) -> IntArray:
    """Host memory that a staged checkpoint takes: a copy of all rows and state of a shard.

    Rows on SSD are assumed to stay there.

    References
    ----------
    PyTorch 2.13, ``torch.distributed.checkpoint.async_save``: the state is staged on the CPU first.
    """
    return np.where(ssd > 0, 0, move) * model.stages


def _exchange_entries(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    ledger: IntArray,
) -> None:
    """Fill in ids, lengths and what is exchanged; see :data:`SHARD_ENTRIES`.

    Where nothing is exchanged (a single rank, a replicated table) the output is the activation that
    every rank holds anyway. Sequences keep the ids that they sent until their gradients are back
    (column-wise one copy a shard), on average as many as a rank receives, so ids and lengths count
    twice. TorchEasyRec counts only ids and outputs, without skew, deduplication or codec; HugeCTR's
    planner counts none of this.
    """
    table, workload = options.table, job.workload
    literal = workload.storage_model == "torcheasyrec"
    element = (job.tables.element if literal else job.tables.output)[table]
    replicated = options.is_sharding("data_parallel")
    exchanges = ~replicated & (job.ranks > 1)
    plain = literal & job.tables.dynamic[table]
    ids = np.where(plain, exchanged.plain_ids, exchanged.ids if literal else exchanged.peak_ids)
    worst = exchanged.rows_out if literal else exchanged.peak_rows_out
    rows_out = np.where(plain, exchanged.plain_rows_out, worst)
    output = storage.output_bytes(rows_out, shards.columns, element)
    encoding = _coded(output, job.tables.wire[table], element, workload)
    put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
    if workload.storage_model == "embark":
        return
    if literal:
        put["inputs"][:] = storage.input_bytes(ids)
        put["output"][:] = output
        put["encoding"][:] = np.where(exchanges & ~plain, encoding, 0)
        return
    pooled = job.tables.pooled[table]
    copies = batches_in_flight(workload) * np.where(exchanges & ~pooled, 2, 1)
    bags = workload.batch_per_rank * job.ranks * job.tables.features[table]
    put["inputs"][:] = copies * storage.input_bytes(ids)
    put["lengths"][:] = np.where(exchanges, copies * LENGTHS * bags, 0)
    if workload.prefetch_pipeline:
        cached = options.is_mode("CACHING") | in_store(job, options)
        ahead = prefetch_bytes(storage.input_bytes(ids), workload.prefetch_passes)
        put["prefetch"][:] = np.where(cached, ahead, 0)
    put["output"][:] = np.where(exchanges, output, 0)
    summed = pooled & options.is_sharding("row_wise")
    put["send_buffer"][:] = np.where(exchanges, _send_buffer(job, table, output, summed), 0)
    put["encoding"][:] = np.where(exchanges, encoding, 0)
    if workload.trains:
        put["gradients"][:] = np.where(exchanges, _gradients(job, table, output), 0)
        for name in ("gradient_bucket", "dense_gradients"):
            put[name][:] = np.where(replicated, put["weights"], 0)


def _send_buffer(job: Job, table: IntArray, output: IntArray, summed: BoolArray) -> IntArray:
    """The copy of the output that is sent.

    Sequences are permuted first, even before a codec reads them. Pooled embeddings are copied to
    the all-to-all's buffer in the wire's type, after a larger clamped copy has been freed; a
    reduce-scatter (``summed``) reads them in place.
    """
    wire, element = job.tables.wire[table], job.tables.output[table]
    clamped = (wire != element) & (job.workload.codec == "stock")
    copied = ceil_div(output * np.where(clamped | summed, 0, wire), element)
    return np.where(job.tables.pooled[table], copied, output)


def _gradients(job: Job, table: IntArray, output: IntArray) -> IntArray:
    """Gradients of the output: received, decoded where encoded; sequences are permuted back."""
    wire, element = job.tables.wire_backward[table], job.tables.output[table]
    arrived = output + ceil_div(output * np.where(wire == element, 0, wire), element)
    return arrived + np.where(job.tables.pooled[table], 0, output)


LENGTHS = 16
"""Bytes of a bag's length and offset."""


def _coded(output: IntArray, wire: IntArray, element: IntArray, workload: Workload) -> IntArray:
    """Memory of the codec besides its input; a given peak factor takes precedence."""
    if workload.codec_peak_factor is not None:
        held = np.ceil(output * (workload.codec_peak_factor - 1)).astype(np.int64)
        return np.where(wire == element, 0, held)
    over, under = send_share(wire, element, workload.codec == "stock")
    return ceil_div(output * over, under)


def _fbgemm(
    tables: TableColumns, options: OptionColumns, shards: ShardColumns
) -> tuple[IntArray, IntArray, IntArray]:
    """Ledger of the rows, DDR and moved bytes as FBGEMM's kernels keep them."""
    table, element = options.table, tables.element[options.table]
    dense = options.is_sharding("data_parallel")
    numbers = tables.state_row[table], tables.state_column[table]
    found = storage.fbgemm_bytes(
        shards.rows, shards.columns, element, numbers,
        np.where(dense, element, storage.STATE_BYTES), tables.header[table],
    )  # fmt: skip
    whole = options.is_mode("HBM_ONLY")
    ledger = np.zeros((len(table), len(SHARD_NAMES)), dtype=np.int64)
    put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
    put["weights"][:] = np.where(whole, found.weights, 0)
    put["state"][:] = found.row_state + np.where(whole, found.column_state, 0)
    ddr = np.where(whole, 0, found.weights + found.column_state)
    cached = np.flatnonzero(options.is_mode("CACHING") & ~tables.dynamic[table])
    put["weights"][cached], put["cache_index"][cached] = _cache(
        tables, options.at(cached), shards.at(cached), np.maximum(element[cached], 2)
    )
    return ledger, ddr, found.weights + found.row_state + found.column_state


def _cache(
    tables: TableColumns, options: OptionColumns, shards: ShardColumns, element: IntArray
) -> tuple[IntArray, IntArray]:
    """HBM of cached shards: rows of the cache (fp8 is cached as fp16), and its index."""
    size = tables.rows[options.table], tables.dim[options.table]
    shape, ratio = (shards.rows, shards.columns), (options.over, options.under)
    return storage.torchrec_cache(shape, size, element, ratio)


def _torchrec(
    tables: TableColumns, options: OptionColumns, shards: ShardColumns
) -> tuple[IntArray, IntArray, IntArray]:
    """Ledger of the rows, DDR and moved bytes as TorchRec's planner counts them."""
    table = options.table
    over, under = tables.state_over[table], tables.state_under[table]
    element = tables.element[table]
    weights = storage.torchrec_weights(shards.rows, shards.columns, element)
    state = storage.torchrec_state(weights, over, under)
    ledger = np.zeros((len(table), len(SHARD_NAMES)), dtype=np.int64)
    put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
    whole = options.is_mode("HBM_ONLY")
    put["weights"][:], put["state"][:] = np.where(whole, weights, 0), np.where(whole, state, 0)
    ddr = np.where(whole, 0, weights + state)
    cached = np.flatnonzero(options.is_mode("CACHING") & ~tables.dynamic[table])
    part, put["cache_index"][cached] = _cache(
        tables, options.at(cached), shards.at(cached), element[cached]
    )
    put["weights"][cached] = part
    put["state"][cached] = storage.torchrec_state(part, over[cached], under[cached])
    return ledger, ddr, weights + state


def _key_value(
    job: Job, options: OptionColumns, shards: ShardColumns, ledger: IntArray, ddr: IntArray
) -> IntArray:
    """Enter shards in key-value stores into ledger and DDR; returns SSD bytes, int64 array."""
    ssd = np.zeros_like(ddr)
    stored = np.flatnonzero(in_store(job, options) & (shards.rows > 0))
    if not len(stored):
        return ssd
    found = store_bytes(job, options.at(stored), shards.at(stored))
    put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
    put["weights"][stored], put["cache_index"][stored] = found.cache, found.indices
    put["state"][stored], ddr[stored], ssd[stored] = found.state, found.ddr, found.ssd
    return ssd


def _dynamicemb(
    tables: TableColumns, options: OptionColumns, rows: IntArray, storage_model: str
) -> tuple[IntArray, IntArray, IntArray]:
    """The same for dynamicemb shards; an external store takes rows that a cache keeps on the host.

    Values in HBM are split into weights and state as in one row; padding counts as state.
    """
    table = options.table
    runtime = storage_model == "runtime"
    value = (tables.runtime_row if runtime else tables.planner_row)[table]
    caching = options.is_mode("CACHING")
    sizes = rows, value, tables.bucket[table], (options.over, options.under), caching
    found = (
        storage.runtime_tiers(*sizes, tables.score_words[table])
        if runtime
        else storage.torcheasyrec_tiers(*sizes)
    )
    ddr = np.where(caching & tables.external[table], 0, found.ddr)
    ledger = np.zeros((len(table), len(SHARD_NAMES)), dtype=np.int64)
    put = dict(zip(SHARD_NAMES, ledger.T, strict=True))
    row = tables.dim[table] * tables.element[table]
    put["weights"][:] = storage.ceil_div_product(found.values_hbm, row, value)
    put["state"][:] = found.values_hbm - put["weights"]
    put["metadata"][:] = found.hbm - found.values_hbm + tables.counter[table]
    return ledger, ddr, rows * value


def shard_seconds(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    bandwidth: FloatArray,
    misses: FloatArray,
    stored: Fetched,
) -> FloatArray:
    """Seconds per phase; float array [entries, 5]; every argument has one row per shard entry.

    A rank whose row-wise shard is empty still takes part in the exchange; like TorchRec, we charge
    it like the others. Inference has no backward phases. ``bandwidth`` is that of the lookup, in
    bytes per second; ``misses`` are the distinct rows of a step that the shard's cache does not
    hold; ``stored`` is what key-value stores fetch.
    """
    table, kernel = options.table, job.profile.kernel
    element, weighted = job.tables.element[table], job.tables.weighted[table]
    whole = options.is_sharding("table_wise", "column_wise", "table_column_wise")
    sent = exchanged.rows_out * shards.columns * job.tables.wire[table]
    kept = exchanged.rows_out * shards.columns * job.tables.output[table]
    written = np.where(options.is_sharding("data_parallel"), kept, sent)
    row = np.maximum(shards.columns, np.where(whole, kernel.least_columns, 0)) * element
    forward = lookup.forward_seconds(exchanged.ids, written, row, weighted, bandwidth)
    forward *= np.where(whole, lookup.narrow_penalty(shards.columns, kernel), 1.0)
    forward += kernel.launch_seconds
    backward = lookup.backward_seconds(forward, weighted, _state(job)[table], kernel)
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
    seconds[:, 4] = np.where(in_store(job, options), stored.seconds, seconds[:, 4])
    return seconds


def _state(job: Job) -> FloatArray:
    """Copies of a row that the optimizers of dynamicemb tables keep; float array [tables].

    TorchEasyRec's planner ignores the optimizer.
    """
    tables = job.tables
    counted = tables.dynamic & (job.workload.cost_model == "law")
    return np.where(counted, tables.state_over / tables.state_under, 0.0)


def _exchange(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    bandwidth: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Forward and backward exchange; both zero on a single rank, except for a dense update."""
    kernel, links, table = job.profile.kernel, job.links, options.table
    replicated, by_all = options.is_sharding("data_parallel"), options.is_sharding("row_wise")
    by_machine = options.is_sharding("table_row_wise", "grid_shard")

    def collective(wire: IntArray) -> FloatArray:
        pooled = job.tables.pooled[table]
        sent = exchanged.rows_out * shards.columns * wire
        held = np.where(pooled, job.traffic.outputs[table] * links.groups, exchanged.rows_out)
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
