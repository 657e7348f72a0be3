"""What shards receive and return in a step, and the memory that this takes at each moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.inputs.model import Workload
from milp_planner.pricing import storage
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.runtimes.registry import by_runtime
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, Places, ceil_div

LENGTHS = 16
"""Bytes of a bag's length and offset."""


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

    def at(self, index: Places) -> Exchanged:
        """Some of the entries."""
        return Exchanged(*(each[index] for each in self))


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


def exchange_entries(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> dict[str, IntArray]:
    """Bytes of ids, lengths and what is exchanged, by entry of the ledger; int64 arrays [entries].

    As the runtime holds them, or as TorchRec's and TorchEasyRec's planners count them: ids and
    outputs of an average batch; none with ``storage_model: rows``.
    """
    count = {"runtime": _as_held, "torcheasyrec": _as_planned}.get(job.workload.storage_model)
    return {} if count is None else count(job, options, shards, exchanged)


def _as_planned(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> dict[str, IntArray]:
    """Ids and outputs of an average batch; of some without skew, deduplication or codec."""
    table, element = options.table, job.tables.element[options.table]
    plain = np.zeros(len(table), np.bool_)
    for runtime, at in by_runtime(options):
        plain[at] = runtime.planner_is_plain
    ids = np.where(plain, exchanged.plain_ids, exchanged.ids)
    rows_out = np.where(plain, exchanged.plain_rows_out, exchanged.rows_out)
    output = storage.output_bytes(rows_out, shards.columns, element)
    coded = exchanges(job, options) & ~plain
    encoding = _coded(output, job.tables.wire[table], element, job.workload)
    return {
        "inputs": storage.input_bytes(ids),
        "output": output,
        "encoding": np.where(coded, encoding, 0),
    }


def _as_held(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged
) -> dict[str, IntArray]:
    """Ids, lengths and buffers of the worst batch.

    Where nothing is exchanged (a single rank, a replicated table) the output is the activation that
    every rank holds anyway. Sequences keep the ids that they sent until their gradients are back
    (column-wise one copy a shard), on average as many as a rank receives, so ids and lengths count
    twice.
    """
    table, workload, pooled = options.table, job.workload, job.tables.pooled[options.table]
    element, sent = job.tables.output[table], exchanges(job, options)
    ids = storage.input_bytes(exchanged.peak_ids)
    output = storage.output_bytes(exchanged.peak_rows_out, shards.columns, element)
    copies = batches_in_flight(workload) * np.where(sent & ~pooled, 2, 1)
    bags = workload.batch_per_rank * job.ranks * job.tables.features[table]
    summed = pooled & options.is_sharding("row_wise")
    found = {
        "output": output,
        "lengths": copies * LENGTHS * bags,
        "send_buffer": _send_buffer(job, table, output, summed),
        "encoding": _coded(output, job.tables.wire[table], element, workload),
        "gradients": _gradients(job, table, output) * workload.trains,
    }
    passing = {name: np.where(sent, amount, 0) for name, amount in found.items()}
    return {"inputs": copies * ids, "prefetch": _prefetched(job, options, ids), **passing}


def exchanges(job: Job, options: OptionColumns) -> BoolArray:
    """Whether an option exchanges anything; bool array."""
    return ~options.is_sharding("data_parallel") & (job.ranks > 1)


def _prefetched(job: Job, options: OptionColumns, ids: IntArray) -> IntArray:
    """Buffers of rows that are fetched ahead into caches."""
    if not job.workload.prefetch_pipeline:
        return np.zeros_like(ids)
    cached = options.is_mode("CACHING")
    for runtime, at in by_runtime(options):
        cached[at] |= runtime.fetches_all
    return np.where(cached, prefetch_bytes(ids, job.workload.prefetch_passes), 0)


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


def _coded(output: IntArray, wire: IntArray, element: IntArray, workload: Workload) -> IntArray:
    """Memory of the codec besides its input; a given peak factor takes precedence."""
    if workload.codec_peak_factor is not None:
        held = np.ceil(output * (workload.codec_peak_factor - 1)).astype(np.int64)
        return np.where(wire == element, 0, held)
    over, under = send_share(wire, element, workload.codec == "stock")
    return ceil_div(output * over, under)


def batches_in_flight(workload: Workload) -> int:
    """Batches whose ids are on the device at once.

    1 without a pipeline, 2 with TorchRec's TrainPipelineSparseDist or HugeCTR's, 3 if caches also
    prefetch; a training workload that names no pipeline is assumed to use TorchRec's.

    References
    ----------
    TorchRec 1.8.0, ``planner/shard_estimators.py``, ``calculate_pipeline_io_cost``: two times the
    input, three times with prefetch.
    """
    if workload.prefetch_pipeline:
        return 3
    return 1 if workload.pipelined == "none" else 2


def prefetch_bytes(ids: IntArray, passes: int) -> IntArray:
    """Bytes that prefetching a batch takes for a cached shard with ``ids`` bytes of ids.

    The ids once more, and six times the ids of one pass: linear indices, locations in the cache,
    and the buffers for finding distinct rows. A prefetch runs alongside the step, so it counts at
    every moment.

    References
    ----------
    TorchRec 1.8.0, ``planner/shard_estimators.py``, ``calculate_pipeline_io_cost``:
    1 + 6 / passes, read off memory snapshots.
    """
    return np.add(ids, ceil_div(6 * ids, passes))


def send_share(wire: IntArray, element: IntArray, clamps: bool) -> tuple[IntArray, IntArray]:
    """Memory of a codec while it encodes, over its input, as numerators and denominators.

    0 if the wire has the element's own type: nothing is encoded. Otherwise wire/element for the
    encoded copy, plus 1 for the copy of a codec that clamps before it casts.
    """
    extra = wire + (element if clamps else 0)
    return np.where(wire == element, 0, extra), element
