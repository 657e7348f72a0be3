"""Seconds of every shard entry in every phase: which formula applies to which option."""

from __future__ import annotations

import numpy as np

from milp_planner.costs import exchange, lookup
from milp_planner.costs.exchange import Links
from milp_planner.costs.profile import EfficiencyCurve, Profile
from milp_planner.costs.units import FloatArray
from milp_planner.inputs.workload import Workload
from milp_planner.options.columns import OptionColumns, ShardColumns, TableColumns
from milp_planner.options.shard_bytes import Exchanged
from milp_planner.options.traffic import Traffic

EXCHANGE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
"""Bytes of one element on the wire."""


def bandwidths(
    tables: TableColumns,
    options: OptionColumns,
    hits: FloatArray,
    cover: FloatArray,
    known: FloatArray,
    profile: Profile,
    prefetch: bool,
    cpu_only: bool,
) -> FloatArray:
    """Lookup bandwidth of every option, bytes per second; float array [options].

    Parameters
    ----------
    tables, options
        Columns; ``options`` holds one row an option.
    hits : float array [options]
        Share of lookups served from HBM.
    cover : float array [options]
        Rows of the HBM tier over the distinct rows of a step.
    known : bool array [options]
        Whether the table has access statistics.
    profile : Profile
    prefetch : bool
        Cache misses are fetched ahead, so a cache reads at HBM's bandwidth.
    cpu_only : bool
    """
    kernel = profile.kernel
    dense = np.where(options.is_sharding("data_parallel"), kernel.dense_share, 1.0)
    if cpu_only:
        return dense * profile.ddr
    ratio = options.over / options.under
    caching, dynamic = options.is_mode("CACHING"), tables.dynamic[options.table]

    def x_eff(curve: EfficiencyCurve) -> FloatArray:
        argument = {"cache_ratio": ratio, "hit_ratio": hits, "batch_cover": cover}[curve.over]
        fitted = lookup.efficiency(curve, argument)
        return np.where(known & (curve.given_statistics == "hit_ratio"), hits, fitted)

    flat = np.where(dynamic, profile.host_only, 0.0)
    x = np.where(options.is_mode("HBM_ONLY"), 1.0, flat)
    x = np.where(options.is_mode("HYBRID"), x_eff(profile.hybrid), x)
    x = np.where(caching & dynamic, x_eff(profile.caching), x)
    x = np.where(caching & ~dynamic, x_eff(profile.uvm_caching), x)
    if prefetch:
        x = np.where(caching, 1.0, x)
    host = ~options.is_mode("HBM_ONLY") & ~(caching & prefetch)
    divisor = np.where(dynamic, kernel.dynamicemb_divisor, np.where(host, kernel.host_divisor, 1.0))
    return lookup.tiered_bandwidth(profile, x) * dense / divisor


def shard_seconds(
    tables: TableColumns,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    traffic: Traffic,
    bandwidth: FloatArray,
    misses: FloatArray,
    workload: Workload,
    profile: Profile,
    links: Links,
) -> FloatArray:
    """Seconds a phase; float array [entries, 5], zero for shards without rows.

    ``options``, ``bandwidth`` and ``misses`` hold one row a shard entry. Inference has no backward
    phases.
    """
    table, kernel = options.table, profile.kernel
    element, wire = tables.element[table], EXCHANGE_BYTES[workload.exchange_dtype]
    replicated = options.is_sharding("data_parallel")
    whole = options.is_sharding("table_wise", "column_wise", "table_column_wise")
    sent = exchanged.rows_out * shards.columns * wire
    written = np.where(replicated, exchanged.rows_out * shards.columns * element, sent)
    least = np.where(whole, kernel.least_columns, 0)
    row = np.maximum(shards.columns, least) * element
    weighted = tables.weighted[table]
    forward = lookup.forward_seconds(exchanged.ids, written, row, weighted, bandwidth)
    forward *= np.where(whole, lookup.narrow_penalty(shards.columns, kernel), 1.0)
    forward += kernel.launch_seconds
    backward = lookup.backward_seconds(forward, weighted, kernel)
    out, back = _exchange(tables, options, shards, exchanged, traffic, sent, bandwidth, profile,
                          links)  # fmt: skip
    seconds = np.stack(
        [forward, out, backward, back, lookup.prefetch_seconds(misses, row, profile)], axis=1
    )
    if workload.mode == "inference":
        seconds[:, 2:4] = 0.0
    if not workload.prefetch_pipeline:
        seconds[:, 4] = 0.0
    return seconds * (shards.rows > 0)[:, None]


def _exchange(
    tables: TableColumns,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    traffic: Traffic,
    sent: FloatArray,
    bandwidth: FloatArray,
    profile: Profile,
    links: Links,
) -> tuple[FloatArray, FloatArray]:
    """Forward and backward exchange; both zero on a single rank but for a dense update."""
    table, kernel = options.table, profile.kernel
    pooled, element = tables.pooled[table], tables.element[table]
    replicated = options.is_sharding("data_parallel")
    by_rows = options.is_sharding("row_wise", "table_row_wise", "grid_shard")
    held = np.where(pooled, traffic.outputs[table] * links.machines, exchanged.rows_out)
    across = held * (sent / np.maximum(exchanged.rows_out, 1e-300))
    out = exchange.whole_rows_seconds(sent, links)
    out = np.where(
        options.is_sharding("row_wise"), exchange.row_wise_seconds(sent, pooled, links), out
    )
    two_steps = exchange.table_row_wise_seconds(sent, across, pooled, links)
    out = np.where(options.is_sharding("table_row_wise", "grid_shard"), two_steps, out)
    out = np.where(replicated, 0.0, out)
    copy = exchange.batched_copy_seconds(sent, bandwidth, kernel.batched_copy_multiple)
    back = out + np.where(by_rows & (links.ranks > 1), copy, 0.0)
    size = shards.rows * shards.columns * element
    update = exchange.data_parallel_seconds(size, bandwidth, kernel.dense_update_multiple, links)
    return out, np.where(replicated, update, back)
