"""Costs that 2D parallelism adds to a step: averaging the rows of replicas, and gathering them.

With k replicas a rank averages x bytes by an all-reduce, 2·(k − 1)/k · x over its bottleneck, once
every ``sync_interval`` steps. Fully sharded, a replica keeps one k-th of its fused rows between
forward and backward pass: a reduce-scatter after the lookup and an all-gather before the update, (k
− 1)/k · x each. All replica sets do so at once. As elsewhere in a step, no overlap is assumed.

References
----------
TorchRec 1.8.0, ``distributed/model_parallel.py`` (``DMPCollection.sync``: rows and the optimizer's
``sum``) and ``distributed/batched_embedding_kernel.py`` (``ShardedBatchedFusedEmbedding``).
"""

from __future__ import annotations

import numpy as np

from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.storage import STATE_BYTES
from milp_planner.pricing.units import FloatArray, IntArray, ceil_div


def synced_bytes(job: Job, options: OptionColumns, shards: ShardColumns) -> IntArray:
    """Bytes that a shard averages with its replicas: rows, and the state of (row-wise) Adagrad.

    int64 array [entries]; replicated tables average gradients instead.
    """
    cells = shards.rows * shards.columns
    optimizers = [job.model.optimizer_of(table) for table in job.model.tables]
    by_row = np.array([name == "rowwise_adagrad" for name in optimizers])[options.table]
    by_cell = np.array([name == "adagrad" for name in optimizers])[options.table]
    state = STATE_BYTES * (shards.rows * by_row + cells * by_cell)
    moved = cells * job.tables.element[options.table] + state
    return np.where(options.is_sharding("data_parallel"), 0, moved)


def sync_seconds(job: Job, options: OptionColumns, shards: ShardColumns) -> FloatArray:
    """Seconds per step of averaging and, if fully sharded, gathering; float array [entries].

    0 in inference. Rows in host memory cross the host link too.
    """
    two_d, links = job.cluster.two_d, job.links
    assert two_d is not None
    on_host = options.is_mode("HOST_ONLY") & (not job.site.cpu_only)
    bandwidth = np.where(on_host, min(links.replica, job.profile.host_link), links.replica)
    seconds = np.zeros(len(options.table))
    if not job.workload.trains:
        return seconds
    if two_d.sync_interval != "never":
        seconds += 2 * synced_bytes(job, options, shards) / bandwidth / two_d.sync_interval
    if two_d.strategy == "fully_sharded":
        whole = kept_part(job, options, shards) * job.cluster.replicas
        seconds += 2 * whole / links.replica
    return seconds


def kept_part(job: Job, options: OptionColumns, shards: ShardColumns) -> IntArray:
    """Bytes of rows that a fully sharded replica keeps between forward and backward pass.

    ceil(elements / replicas), of fused tables in HBM; int64 array [entries].
    """
    part = ceil_div(shards.rows * shards.columns, job.cluster.replicas)
    fused = options.is_mode("HBM_ONLY") & ~options.is_sharding("data_parallel")
    return np.where(fused, part * job.tables.element[options.table], 0)


def gathered(
    job: Job, options: OptionColumns, shards: ShardColumns, weights: IntArray
) -> dict[str, IntArray]:
    """Entries of the ledger that replicas change if they are fully sharded.

    The kept part stays. Whole rows exist besides it from before the lookup until the dense part,
    and again once gradients arrive. If replicas do not divide the elements, a padded copy is
    reduced.
    """
    two_d = job.cluster.two_d
    gathers = two_d is not None and two_d.strategy == "fully_sharded" and job.workload.trains
    if not gathers or job.cluster.replicas == 1:
        return {}
    kept = kept_part(job, options, shards)
    padded = kept * job.cluster.replicas
    return {
        "gathered_weights": np.where(kept > 0, weights, 0),
        "padded_weights": np.where((kept > 0) & (padded != weights), padded, 0),
        "weights": np.where(kept > 0, kept, weights),
    }
