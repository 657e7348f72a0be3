"""Seconds of shards, phase by phase: the laws that runtimes share, and what each answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.pricing import exchange, lookup
from milp_planner.pricing.buffers import Exchanged
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.lookup import Hits
from milp_planner.pricing.options import PHASES
from milp_planner.pricing.runtimes.registry import by_runtime
from milp_planner.pricing.runtimes.room import Runtime
from milp_planner.pricing.step import in_slower_tiers, priced_by_step, step_seconds
from milp_planner.pricing.units import FloatArray, IntArray


class Seconds(NamedTuple):
    """Of every shard entry."""

    phases: FloatArray
    """Seconds of each of ``PHASES``; float array [entries, 5]."""
    ssd_step: IntArray
    """Bytes that SSD reads and writes in a step; int64 array [entries]."""


def shard_seconds(
    job: Job, options: OptionColumns, shards: ShardColumns, exchanged: Exchanged, hits: Hits
) -> Seconds:
    """Seconds per phase of every shard entry; every argument has one row per entry."""
    found = np.zeros((len(options.table), len(PHASES)))
    traffic = np.zeros(len(options.table), np.int64)
    for runtime, at in by_runtime(options):
        own = options.at(at), shards.at(at)
        found[at], traffic[at] = by_law(runtime, job, *own, exchanged.at(at), hits.at(at))
    return Seconds(found, traffic)


def by_law(
    runtime: Runtime,
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    hits: Hits,
) -> Seconds:
    """Seconds of one runtime's shards by the laws that all share.

    A rank whose row-wise shard is empty still takes part in the exchange; like TorchRec, we charge
    it like the others. Inference has no backward phases.
    """
    table, kernel = options.table, job.profile.kernel
    element, weighted = job.tables.element[table], job.tables.weighted[table]
    bandwidth = bandwidth_of(runtime, job, options, hits)
    whole = options.is_sharding("table_wise", "column_wise", "table_column_wise")
    sent = exchanged.rows_out * shards.columns * job.tables.wire[table]
    kept = exchanged.rows_out * shards.columns * job.tables.output[table]
    written = np.where(options.is_sharding("data_parallel"), kept, sent)
    row = np.maximum(shards.columns, np.where(whole, kernel.least_columns, 0)) * element
    forward = lookup.forward_seconds(exchanged.ids, written, row, weighted, bandwidth)
    forward *= np.where(whole, lookup.narrow_penalty(shards.columns, kernel), 1.0)
    forward += kernel.launch_seconds
    copies = runtime.state_copies(job, table)
    backward = lookup.backward_seconds(forward, weighted, copies, kernel)
    measured = priced_by_step(job, options) & runtime.measured(job)
    behind = in_slower_tiers(job, options) & runtime.measured(job)
    if job.profile.step is not None and (measured | behind).any():
        ids, rows_out = exchanged.ids, exchanged.rows_out
        there, update = step_seconds(job, job.profile.step, options, shards, ids, rows_out)
        update = update + np.where(weighted, kernel.weighted_multiple, 0.0) * there
        forward = np.where(measured, there, np.where(behind, np.maximum(forward, there), forward))
        backward = np.where(measured & (update > 0), update, backward)
        backward = np.where(behind, np.maximum(backward, update), backward)
    out, back = _exchange(job, options, shards, exchanged, bandwidth)
    fetched = runtime.fetched(job, options, shards, hits, row)
    seconds = np.stack([forward, out, backward, back, fetched.seconds], axis=1)
    if job.workload.mode == "inference":
        seconds[:, 2:4] = 0.0
    return Seconds(seconds, fetched.traffic)


def bandwidth_of(runtime: Runtime, job: Job, options: OptionColumns, hits: Hits) -> FloatArray:
    """Bytes per second of a lookup: the runtime's, less for replicas; without HBM, DDR."""
    dense = np.where(options.is_sharding("data_parallel"), job.profile.kernel.dense_share, 1.0)
    if job.site.cpu_only:
        return dense * job.profile.ddr
    return runtime.bandwidth(job, options, hits) * dense


def _exchange(
    job: Job,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    bandwidth: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Forward and backward exchange; both zero on a single rank, except for a dense update.

    Table-, column- and table-column-wise: O / all-to-all. The copy after an all-gather takes 2.455
    passes over device memory.
    """
    kernel, links, table = job.profile.kernel, job.links, options.table
    replicated, by_all = options.is_sharding("data_parallel"), options.is_sharding("row_wise")
    by_machine = options.is_sharding("table_row_wise", "grid_shard")

    def collective(wire: IntArray, backward: bool) -> FloatArray:
        pooled = job.tables.pooled[table]
        sent = exchanged.rows_out * shards.columns * wire
        held = np.where(pooled, job.traffic.outputs[table] * links.groups, exchanged.rows_out)
        by_rows = exchange.row_wise_seconds(sent, pooled, links, backward)
        across = held * shards.columns * wire
        two_steps = exchange.table_row_wise_seconds(sent, across, pooled, links, backward)
        return np.where(by_machine, two_steps, np.where(by_all, by_rows, sent / links.all_to_all))

    out = collective(job.tables.wire[table], False)
    back = collective(job.tables.wire_backward[table], True)
    gradients = exchanged.rows_out * shards.columns * job.tables.wire_backward[table]
    copy = gradients * kernel.batched_copy_multiple / bandwidth
    back = back + np.where((by_all | by_machine) & (links.ranks > 1), copy, 0.0)
    size = shards.rows * shards.columns * job.tables.element[table]
    update = exchange.data_parallel_seconds(size, bandwidth, kernel.dense_update_multiple, links)
    return np.where(replicated, 0.0, out), np.where(replicated, update, back)
