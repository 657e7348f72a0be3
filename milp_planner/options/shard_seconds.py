"""Seconds of every shard entry in every phase: which formula applies to which option."""

from __future__ import annotations

import numpy as np

from milp_planner.costs import exchange, lookup
from milp_planner.costs.units import FloatArray
from milp_planner.options.columns import OptionColumns, ShardColumns
from milp_planner.options.job import Job
from milp_planner.options.shard_bytes import Exchanged

EXCHANGE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
"""Bytes of one element on the wire."""


def shard_seconds(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    bandwidth: FloatArray,
    misses: FloatArray,
) -> FloatArray:
    """Seconds a phase; float array [entries, 5].

    A rank whose row-wise shard is empty still takes part in the exchange; like TorchRec we charge
    it as the others. Inference has no backward phases.

    Parameters
    ----------
    job : Job
    options, shards, exchanged
        One row a shard entry.
    bandwidth : float array [entries]
        Of the lookup, bytes per second.
    misses : float array [entries]
        Distinct rows of a step that the shard's cache does not hold.
    """
    table, kernel = options.table, job.profile.kernel
    element, weighted = job.tables.element[table], job.tables.weighted[table]
    whole = options.is_sharding("table_wise", "column_wise", "table_column_wise")
    wire = EXCHANGE_BYTES[job.workload.exchange_dtype]
    sent = exchanged.rows_out * shards.columns * wire
    kept = exchanged.rows_out * shards.columns * element
    written = np.where(options.is_sharding("data_parallel"), kept, sent)
    row = np.maximum(shards.columns, np.where(whole, kernel.least_columns, 0)) * element
    forward = lookup.forward_seconds(exchanged.ids, written, row, weighted, bandwidth)
    forward *= np.where(whole, lookup.narrow_penalty(shards.columns, kernel), 1.0)
    forward += kernel.launch_seconds
    backward = lookup.backward_seconds(forward, weighted, kernel)
    out, back = _exchange(job, options, shards, exchanged, sent, bandwidth)
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
    sent: FloatArray,
    bandwidth: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Forward and backward exchange; both zero on a single rank but for a dense update."""
    kernel, links, table = job.profile.kernel, job.links, options.table
    pooled = job.tables.pooled[table]
    replicated, by_all = options.is_sharding("data_parallel"), options.is_sharding("row_wise")
    by_machine = options.is_sharding("table_row_wise", "grid_shard")
    wire = EXCHANGE_BYTES[job.workload.exchange_dtype]
    held = np.where(pooled, job.traffic.outputs[table] * links.machines, exchanged.rows_out)
    across = held * shards.columns * wire
    out = exchange.whole_rows_seconds(sent, links)
    out = np.where(by_all, exchange.row_wise_seconds(sent, pooled, links), out)
    two_steps = exchange.table_row_wise_seconds(sent, across, pooled, links)
    out = np.where(replicated, 0.0, np.where(by_machine, two_steps, out))
    copy = exchange.batched_copy_seconds(sent, bandwidth, kernel.batched_copy_multiple)
    back = out + np.where((by_all | by_machine) & (links.ranks > 1), copy, 0.0)
    size = shards.rows * shards.columns * job.tables.element[table]
    update = exchange.data_parallel_seconds(size, bandwidth, kernel.dense_update_multiple, links)
    return out, np.where(replicated, update, back)
