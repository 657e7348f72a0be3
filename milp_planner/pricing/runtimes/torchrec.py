"""TorchRec's tables in FBGEMM's kernels: HBM, host memory, or a cache of host memory.

References
----------
FBGEMM 1.8.0, ``split_table_batched_embeddings_ops_training.py``; TorchRec 1.8.0,
``planner/shard_estimators.py`` (what its planner counts), ``distributed/embedding.py`` (sequences).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from milp_planner.inputs.constraints import LARGEST_L1, Mode, ShardingType
from milp_planner.inputs.table import Table
from milp_planner.pricing import lookup, storage
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.options import SHARDING_TYPES
from milp_planner.pricing.runtimes.room import Rows, Runtime
from milp_planner.pricing.site import Site, TableTraits
from milp_planner.pricing.storage import KEY_VALUE_OPTIMIZERS
from milp_planner.pricing.units import FloatArray, IntArray, ceil_div

SEQUENCE_TYPES: tuple[ShardingType, ...] = (
    "data_parallel",
    "table_wise",
    "column_wise",
    "row_wise",
)
"""Sharding types of TorchRec 1.8.0's EmbeddingCollectionSharder."""
KERNELS = {"HBM_ONLY": "fused", "HOST_ONLY": "fused_uvm", "CACHING": "fused_uvm_caching"}


class TorchRec(Runtime):
    """Tables in FBGEMM's table-batched kernels."""

    name = "torchrec"
    allowed = "TorchRec tables take any sharding type in HBM_ONLY, CACHING or HOST_ONLY"
    stashes = True

    def no_store(self, table: Table, trains: bool) -> str:
        """Limits of FBGEMM's key-value kernels."""
        if table.dtype not in ("fp32", "fp16"):
            return f"FBGEMM's key-value kernels hold fp32 and fp16, not {table.dtype}"
        if trains and table.optimizer not in KEY_VALUE_OPTIMIZERS:
            return (
                "FBGEMM's key-value kernels have rowwise_adagrad, adam and partial_rowwise_adam, "
                f"not {table.optimizer}"
            )
        if all(ratio > LARGEST_L1 for ratio in table.constraints.cache_ratios or (LARGEST_L1,)):
            return f"all its cache ratios exceed {LARGEST_L1}, the most that FBGEMM's cache allows"
        return ""

    def sharding_types(self, traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
        """All; four for sequences."""
        if traits.output == "sequence":
            return SEQUENCE_TYPES, (
                "TorchRec's EmbeddingCollection (sequence output) is sharded "
                f"{', '.join(SEQUENCE_TYPES)} only"
            )
        return SHARDING_TYPES, ""

    def modes(self, traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
        """HBM, a cache of each ratio, host memory."""
        yield "HBM_ONLY", Fraction(1)
        yield from (("CACHING", ratio) for ratio in traits.ratios)
        yield "HOST_ONLY", Fraction(0)

    def rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """State is fp32, in HBM if it is per row, else where the rows are; none of it is cached.

        Of replicas it has the table's type, as PyTorch's optimizers keep state in the type of the
        parameter.

        References
        ----------
        FBGEMM 1.8.0, ``split_table_batched_embeddings_ops_training.py``: ``construct_split_state``
        and the states' ``_apply_split`` in ``__init__`` (row-wise state of managed tables is on the
        device, other state managed and not cacheable).
        """
        tables, table = job.tables, options.table
        element = tables.element[table]
        number = np.where(options.is_sharding("data_parallel"), element, storage.STATE_BYTES)
        weights = shards.rows * (shards.columns * element + tables.header[table])
        of_rows = shards.rows * tables.state_row[table] * number
        of_cells = shards.rows * shards.columns * tables.state_column[table] * number
        whole = options.is_mode("HBM_ONLY")
        cache, index = cached_rows(job, options, shards, np.maximum(element, 2))
        hbm = {
            "weights": cache + np.where(whole, weights, 0),
            "state": of_rows + np.where(whole, of_cells, 0),
            "cache_index": index,
        }
        ddr = np.where(whole, 0, weights + of_cells)
        return Rows(hbm, ddr, np.zeros_like(ddr), weights + of_rows + of_cells)

    def planner_rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """State in multiples of the weights, a cache's share of it in HBM."""
        tables, table = job.tables, options.table
        over, under = tables.state_over[table], tables.state_under[table]
        element = tables.element[table]
        weights = shards.rows * shards.columns * element
        state = ceil_div(weights * over, under)
        whole = options.is_mode("HBM_ONLY")
        cache, index = cached_rows(job, options, shards, element)
        held = cache + np.where(whole, weights, 0)
        hbm = {"weights": held, "state": ceil_div(held * over, under), "cache_index": index}
        ddr = np.where(whole, 0, weights + state)
        return Rows(hbm, ddr, np.zeros_like(ddr), weights + state)

    def bandwidth(self, job: Job, options: OptionColumns, hits: lookup.Hits) -> FloatArray:
        """HBM, the cache's curve (HBM if rows are fetched ahead) or the host link."""
        profile = job.profile
        cached = lookup.between(profile, profile.uvm_caching, options, hits)
        cached = cached / profile.kernel.host_divisor
        if job.workload.prefetch_pipeline:
            cached = np.full_like(cached, profile.hbm)
        host = profile.host_link / profile.kernel.host_divisor
        tiers = np.where(options.is_mode("CACHING"), cached, host)
        return np.where(options.is_mode("HBM_ONLY"), profile.hbm, tiers)

    def runs(self, mode: str, virtual: bool) -> bool:
        """Not those on SSD."""
        return mode != "SSD"

    def kernel(self, sharding: str, mode: str, cpu_only: bool, virtual: bool) -> str:
        """Dense with data_parallel; only fused without HBM: CPUs have no UVM kernels."""
        if sharding == "data_parallel":
            return "dense"
        return "fused" if cpu_only else KERNELS[mode]


def cached_rows(
    job: Job, options: OptionColumns, shards: ShardColumns, element: IntArray
) -> tuple[IntArray, IntArray]:
    """HBM of cached shards: rows of the cache (FBGEMM caches fp8 as fp16), and its index.

    0 for others.
    """
    rows, index = np.zeros_like(shards.rows), np.zeros_like(shards.rows)
    at = np.flatnonzero(options.is_mode("CACHING"))
    own, parts = options.at(at), shards.at(at)
    size = job.tables.rows[own.table], job.tables.dim[own.table]
    shape, ratio = (parts.rows, parts.columns), (own.over, own.under)
    rows[at], index[at] = storage.torchrec_cache(shape, size, element[at], ratio)
    return rows, index


RUNTIME = TorchRec()
