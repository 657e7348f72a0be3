"""Bytes of every shard entry: which storage formula applies to which option."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from milp_planner.costs import dynamicemb_storage, storage
from milp_planner.costs.units import FloatArray, IntArray
from milp_planner.inputs.workload import Workload
from milp_planner.options.columns import OptionColumns, ShardColumns, TableColumns


class ShardBytes(NamedTuple):
    """int64 arrays [entries]; see :class:`milp_planner.options.options.Entries`."""

    hbm: IntArray
    buffer: IntArray
    ddr: IntArray
    move: IntArray


class Exchanged(NamedTuple):
    """What a shard receives and returns in one step; float arrays [entries].

    ``ids`` and ``rows_out`` are means, with skew and deduplication; the ``plain`` ones without.
    """

    ids: FloatArray
    rows_out: FloatArray
    plain_ids: FloatArray
    plain_rows_out: FloatArray


def shard_bytes(
    tables: TableColumns,
    options: OptionColumns,
    shards: ShardColumns,
    exchanged: Exchanged,
    workload: Workload,
    ranks: int,
    cpu_only: bool,
) -> ShardBytes:
    """HBM, exchange buffer, DDR and moved bytes of every shard entry.

    ``options`` holds one row a shard entry; a shard without rows needs nothing. On a cluster
    without HBM everything is charged to DDR.
    """
    table = options.table
    hbm, ddr, move = _torchrec(tables, options, shards)
    dynamic = np.flatnonzero(tables.dynamic[table])
    if len(dynamic):
        hbm[dynamic], ddr[dynamic], move[dynamic] = _dynamicemb(
            tables, options.at(dynamic), shards.rows[dynamic], workload.storage_model
        )
    ids, rows_out, factor = exchanged.ids, exchanged.rows_out, workload.codec_peak_factor
    peak = np.where(options.is_sharding("data_parallel") | (ranks == 1), 1.0, factor)
    if workload.storage_model == "torcheasyrec":
        ids = np.where(tables.dynamic[table], exchanged.plain_ids, ids)
        rows_out = np.where(tables.dynamic[table], exchanged.plain_rows_out, rows_out)
        peak = np.where(tables.dynamic[table], 1.0, peak)
    present = shards.rows > 0
    inputs = storage.input_bytes(ids)
    output = storage.output_bytes(rows_out, shards.columns, tables.element[table])
    hbm = np.where(present, hbm + inputs, 0)
    buffer = np.where(present, np.ceil(output * peak).astype(np.int64), 0)
    if cpu_only:
        zero = np.zeros_like(hbm)
        return ShardBytes(zero, zero, np.where(present, ddr + hbm + buffer, 0), move)
    return ShardBytes(hbm, buffer, np.where(present, ddr, 0), move)


def _torchrec(
    tables: TableColumns, options: OptionColumns, shards: ShardColumns
) -> tuple[IntArray, IntArray, IntArray]:
    table = options.table
    rows, dim, element = tables.rows[table], tables.dim[table], tables.element[table]
    over, under = tables.state_over[table], tables.state_under[table]
    weights = storage.torchrec_weights(shards.rows, shards.columns, element)
    full = weights + storage.torchrec_state(weights, over, under)
    hbm = np.where(options.is_mode("HBM_ONLY"), full, 0)
    ddr = full - hbm
    cached = np.flatnonzero(options.is_mode("CACHING") & ~tables.dynamic[table])
    if len(cached):
        part, index = storage.torchrec_cache(
            shards.rows[cached],
            shards.columns[cached],
            rows[cached],
            dim[cached],
            element[cached],
            (options.over[cached], options.under[cached]),
        )
        state = storage.torchrec_state(part, over[cached], under[cached])
        hbm[cached] = part + state + index
    return hbm, ddr, full


def _dynamicemb(
    tables: TableColumns, options: OptionColumns, rows: IntArray, storage_model: str
) -> tuple[IntArray, IntArray, IntArray]:
    table = options.table
    runtime = storage_model == "runtime"
    value = (tables.runtime_row if runtime else tables.planner_row)[table]
    tiers = dynamicemb_storage.runtime_tiers if runtime else dynamicemb_storage.torcheasyrec_tiers
    ratio = (options.over, options.under)
    caching = options.is_mode("CACHING")
    found = tiers(rows, value, tables.bucket[table], ratio, caching)
    outside = caching & tables.external[table]
    ddr = np.where(outside, 0, found.ddr)
    return found.hbm + tables.counter[table], ddr, rows * value
