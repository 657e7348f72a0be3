"""TorchRec tables in a key-value store: rows on SSD (or in host memory), a cache of them in HBM.

Every shard is a kernel of its own, as under ``use_one_tbe_per_table``. ``max_l1_cache_size`` caps
its cache: the fewest whole MiB that hold the cache ratio of the largest shard.

References
----------
TorchRec 1.9.2, ``distributed/batched_embedding_kernel.py`` (``_populate_ssd_tbe_params``: sets of
the cache); FBGEMM 1.8.0, ``tbe/ssd/training.py`` (cache, buffers for evicted rows, state, write
buffer) and ``split_embedding_configs.py`` (bytes of state); FBGEMM's ``fixed_block_pool.h`` (header
of a row in host memory). What TorchRec's planner counts: ``planner/shard_estimators.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from milp_planner.inputs.constraints import LARGEST_L1, Mode, ShardingType
from milp_planner.inputs.model import Workload
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, TableColumns
from milp_planner.pricing.lookup import Hits
from milp_planner.pricing.runtimes.room import Fetched, Rows
from milp_planner.pricing.runtimes.torchrec import TorchRec
from milp_planner.pricing.site import Site, TableTraits
from milp_planner.pricing.storage import STATE_BYTES
from milp_planner.pricing.units import FloatArray, IntArray, ceil_div, round_up

WAYS = 32
"""Slots of a set of FBGEMM's cache."""
SLOT_BYTES, PREFETCHED_SLOT_BYTES = 16, 20
"""Id and age of a slot, plus a lock if a pipeline prefetches."""
EVICTED_BYTES = 12
"""Id and slot of a row in one of the two buffers for evicted rows."""
KEY_BYTES = 8
HEADER_BYTES, MAP_BYTES = 16, 16
"""For a row in host memory: its header (key, time, count), and its entry in the hash map."""
BLOCK_BYTES = 4096
"""The least that an SSD reads or writes."""
MEBIBYTE = 2**20


VIRTUAL_TYPES: tuple[ShardingType, ...] = ("table_wise", "row_wise", "table_row_wise")
"""Sharding types that support virtual tables in TorchRec 1.9.2 (``sharding/``)."""


class KeyValue(TorchRec):
    """Rows on SSD or, of virtual tables, in host memory; SSD is offered if a machine has it."""

    name = "key_value"
    stashes = False
    fetches_all = True

    def takes(self, virtual: bool) -> bool:
        """Virtual tables, and others on SSD."""
        return True

    def sharding_types(self, traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
        """Three."""
        every, _ = super().sharding_types(traits)
        legal = tuple(each for each in VIRTUAL_TYPES if each in every)
        return legal, f"virtual tables are sharded {', '.join(legal)} only"

    def modes(self, traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
        """A cache of each ratio, of rows in host memory or on SSD."""
        if traits.virtual:
            yield from (("CACHING", ratio) for ratio in traits.l1_ratios)
        if site.has_ssd:
            yield from (("SSD", ratio) for ratio in traits.l1_ratios)

    def rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """As FBGEMM allocates.

        HBM: slots · (row + 16, or 20 with prefetch), and the state of all rows unless it is kept in
        the row. DDR: two buffers for evicted rows, slots · (row + 12) each; L2 and write buffer;
        for a virtual table in host memory, every row with 32 bytes of header and map instead. SSD:
        a row and its key. What moves are all rows and their state.
        """
        tables, table, on_ssd = job.tables, options.table, options.is_mode("SSD")
        rows, columns, element = shards.rows, shards.columns, tables.element[options.table]
        slots = cache_slots(rows, columns, element, _cap(job, options, shards))
        row = row_elements(tables, table, columns) * element
        hbm = {
            "weights": slots * row,
            "cache_index": slots * slot_bytes(job.workload),
            "state": rows * state_bytes(tables, table, columns),
        }
        hosted = rows * (row + HEADER_BYTES + MAP_BYTES)
        buffers = tables.l2[table] + tables.write_buffer[table]
        ddr = 2 * slots * (row + EVICTED_BYTES) + np.where(on_ssd, buffers, hosted)
        ssd = np.where(on_ssd, rows * (row + KEY_BYTES), 0)
        return Rows(hbm, ddr, ssd, super().rows(job, options, shards).move)

    def planner_rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """As TorchRec's: the cap or a fifth of the *table* on every shard, no DDR."""
        tables, table, nothing = job.tables, options.table, np.zeros_like(shards.rows)
        element, fifth, cap = tables.element[table], LARGEST_L1, _cap(job, options, shards)
        whole = tables.rows[table] * tables.dim[table] * element
        cache = np.minimum(cap * MEBIBYTE, ceil_div(whole * fifth.numerator, fifth.denominator))
        move = super().planner_rows(job, options, shards).move
        index = ceil_div(shards.rows * 36, 5)  # rows · (4 + 16/5)
        stored = np.where(tables.virtual[table], 0, move + index)
        return Rows({"weights": cache}, nothing, stored, move)

    def fetches_ahead(self, job: Job, mode: str) -> bool:
        """Always, pipelined or not."""
        return True

    def bandwidth(self, job: Job, options: OptionColumns, hits: Hits) -> FloatArray:
        """HBM: a step's rows are there."""
        return np.full(len(options.table), job.profile.hbm)

    def fetched(
        self, job: Job, options: OptionColumns, shards: ShardColumns, hits: Hits, row: IntArray
    ) -> Fetched:
        """Time and SSD traffic of the distinct rows that a step misses.

        Rows that HBM does not hold cross the host link; those that L2 does not hold either are read
        from SSD, in blocks of 4 KiB at least, at the rank's share of its machine's bandwidth. In
        training, as many changed rows leave the cache and travel the same way back. All of it
        happens before the lookup, pipelined or not, so the lookup itself reads HBM.
        """
        table, on_ssd = options.table, options.is_mode("SSD")
        size = row_elements(job.tables, table, shards.columns) * job.tables.element[table]
        ways = 2.0 if job.workload.trains else 1.0
        wanted = job.traffic.distinct[table] / options.group_ranks * (shards.rows > 0)
        linked = ways * wanted * (1.0 - hits.unique) * size
        drive = ways * wanted * (1.0 - hits.behind) * on_ssd * np.maximum(size, BLOCK_BYTES)
        seconds = linked / job.profile.host_link + drive / job.cluster.ssd_share
        return Fetched(seconds, np.ceil(drive).astype(np.int64))

    def runs(self, mode: str, virtual: bool) -> bool:
        """SSD, and all of virtual tables."""
        return virtual or mode == "SSD"

    def kernel(self, sharding: str, mode: str, cpu_only: bool, virtual: bool) -> str:
        """Virtual tables have two of their own."""
        if virtual:
            return {"SSD": "ssd_virtual_table", "CACHING": "dram_virtual_table"}[mode]
        return "key_value"


def row_elements(tables: TableColumns, table: IntArray, columns: IntArray) -> IntArray:
    """Elements of a row in the store: columns, and optimizer state if kept in the row."""
    numbers = tables.state_row[table] + tables.state_column[table] * columns
    state = STATE_BYTES * numbers
    extra = round_up(ceil_div(state, tables.element[table]), 4)
    return columns + np.where(tables.state_in_rows[table], extra, 0)


def state_bytes(tables: TableColumns, table: IntArray, columns: IntArray) -> IntArray:
    """Optimizer state of one row in HBM, in bytes.

    4 for row-wise Adagrad, 4 + 8 · columns for Adam (which counts the updates of a row), 4 + 4 ·
    columns for partial row-wise Adam; 0 if it is kept in the row.
    """
    numbers = tables.state_row[table] + tables.state_column[table] * columns
    counted = STATE_BYTES * (numbers + tables.counts_steps[table])
    return np.where(tables.state_in_rows[table], 0, counted)


def cache_mebibytes(
    rows: IntArray, columns: IntArray, element: IntArray, ratio: tuple[IntArray, IntArray]
) -> IntArray:
    """``max_l1_cache_size`` of a table by its largest shard: at least one set of the cache."""
    over, under = ratio
    wanted = ceil_div(rows * over, under) * columns * element
    return ceil_div(np.maximum(wanted, WAYS * columns * element), MEBIBYTE)


def cache_slots(
    rows: IntArray, columns: IntArray, element: IntArray, mebibytes: IntArray | None
) -> IntArray:
    """Slots of a shard's cache: a fifth of its rows in whole sets, at least one, up to the cap.

    Without a cap (None) there is no cache: TorchRec's planner then counts 0 bytes
    (meta-pytorch/torchrec issue 3783).
    """
    fifth = rows * LARGEST_L1.numerator // LARGEST_L1.denominator
    sets = np.maximum(fifth // WAYS, 1)
    if mebibytes is not None:
        sets = np.minimum(sets, mebibytes * MEBIBYTE // (WAYS * columns * element))
    return WAYS * sets


def _cap(job: Job, options: OptionColumns, shards: ShardColumns) -> IntArray:
    """``max_l1_cache_size`` of each entry's table, by the largest shard of its option."""
    largest = np.searchsorted(shards.option, shards.option)
    rows, columns = shards.rows[largest], shards.columns[largest]
    element = job.tables.element[options.table]
    return cache_mebibytes(rows, columns, element, (options.over, options.under))


def slot_bytes(workload: Workload) -> int:
    """Bytes of a slot of the cache besides its row."""
    return PREFETCHED_SLOT_BYTES if workload.prefetch_pipeline else SLOT_BYTES


RUNTIME = KeyValue()
