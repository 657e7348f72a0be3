"""Time to exchange embeddings between ranks, from the bottleneck of each collective.

Float64 seconds; O is the size in bytes of the buffer that a shard's rank contributes.

References
----------
TorchRec 1.8.0, ``planner/estimator`` (communication) and ``planner/constants.py`` (factors).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.interconnect import (
    all_to_all_bandwidth,
    concurrent_bandwidth,
    reduce_scatter_bandwidth,
)
from milp_planner.inputs.model import Workload
from milp_planner.inputs.table import ELEMENT_BYTES, Table
from milp_planner.inputs.two_d import replica_sets
from milp_planner.pricing.units import BoolArray, FloatArray, Numbers


def wire_bytes(workload: Workload, table: Table) -> tuple[int, int]:
    """Bytes of one element of a table on the wire: forward, and of gradients backward."""
    forward = table.exchange_dtype or workload.exchange_dtype
    backward = table.exchange_dtype_backward or table.exchange_dtype
    backward = backward or workload.exchange_dtype_backward or workload.exchange_dtype
    return ELEMENT_BYTES[forward], ELEMENT_BYTES[backward]


@dataclass(frozen=True)
class Links:
    """Bandwidth of each kind of collective, in bytes of a rank's buffer per second.

    Infinite if nothing has to move (a single rank, a single machine).
    """

    all_to_all: float
    """Over all ranks: table-, column- and table-column-wise outputs, and row-wise sequences."""
    reduce_scatter: float
    """Over all ranks (and the all-gather that mirrors it): row-wise pooled outputs."""
    local: float
    """Reduce-scatter inside one row group (a machine, or several of a domain): the first step of
    table-row-wise."""
    local_all_to_all: float
    """All-to-all inside one row group: the same for sequences."""
    across: float
    """From one rank to the other row groups: the second step of table-row-wise."""
    all_reduce: float
    """Bytes of gradient per second of an all-reduce over all ranks of all sharding groups
    (data-parallel)."""
    groups: int
    """Number of row groups."""
    ranks: int
    replica: float = inf
    """Reduce-scatter among the replicas of a rank in other sharding groups."""
    all_gather: float | None = None
    """All-gather over all ranks; None: as the reduce-scatter that it mirrors."""
    local_gather: float | None = None
    """All-gather inside one row group; None: as ``local``."""
    reduced: tuple[tuple[float, float], ...] = ()
    """Measured all-reduces: bytes by rising size, and seconds; empty: at ``all_reduce``."""
    fused: float = 0.0
    """Bytes that one all-reduce takes at least, if the tables have so many: gradients share it."""


def links_of(cluster: Cluster) -> Links:
    """Bottleneck bandwidths of a cluster's interconnect.

    If machines differ, the slowest counts. An all-reduce is a reduce-scatter and an all-gather, so
    it runs at half their bandwidth.
    """
    graph, whole = cluster.graph(), None if cluster.two_d is None else cluster.two_d.whole
    everyone = range(cluster.num_ranks)
    groups = cluster.row_groups
    distinct = {len(ranks): ranks for ranks in groups}.values()
    scatter = reduce_scatter_bandwidth(graph, everyone)
    return Links(
        all_to_all=all_to_all_bandwidth(graph, everyone),
        reduce_scatter=scatter,
        local=min(reduce_scatter_bandwidth(graph, ranks) for ranks in distinct),
        local_all_to_all=min(all_to_all_bandwidth(graph, ranks) for ranks in distinct),
        across=_across(cluster),
        all_reduce=scatter / 2 if whole is None else links_of(whole).all_reduce,
        groups=len(groups),
        ranks=cluster.num_ranks,
        replica=_replica_bandwidth(cluster),
    )


def _across(cluster: Cluster) -> float:
    """Bandwidth from a rank to the other row groups: the network's if there are several domains."""
    links = cluster.interconnect
    if links is None or len(cluster.row_groups) == 1:
        return inf
    several = len(links.domain_machines(len(cluster.machines))) > 1
    return float((links.inter_machine if several else None) or links.in_domain)


def _replica_bandwidth(cluster: Cluster) -> float:
    """Bytes per second of a reduce-scatter among replicas, while all replica sets do one.

    Infinite without replicas.
    """
    two_d = cluster.two_d
    if two_d is None or two_d.whole is None or cluster.replicas == 1:
        return inf
    size, layout = two_d.sharding_group_size, two_d.layout
    assert isinstance(size, int)
    return concurrent_bandwidth(
        two_d.whole.graph(), replica_sets(two_d.whole.num_ranks, size, layout)
    )


def row_wise_seconds(
    output: FloatArray, pooled: BoolArray, links: Links, backward: bool = False
) -> FloatArray:
    """Exchange of row-wise: reduce-scatter of partial sums (pooled), all-to-all (sequence).

    Backward is the mirror image (all-gather), which a copy in device memory follows.
    """
    sums = (links.all_gather if backward else None) or links.reduce_scatter
    return output / np.where(pooled, sums, links.all_to_all)


def table_row_wise_seconds(
    output: FloatArray, across: Numbers, pooled: BoolArray, links: Links, backward: bool = False
) -> FloatArray:
    """Exchange of table-row-wise and grid: O inside the row group, then between groups.

    ``across`` is the bytes that a rank then holds for the ranks with the same index in all groups.
    """
    sums = (links.local_gather if backward else None) or links.local
    inside = output / np.where(pooled, sums, links.local_all_to_all)
    return inside + across / links.across


def data_parallel_seconds(
    table: Numbers, bandwidth: FloatArray, update_multiple: float, links: Links
) -> FloatArray:
    """All-reduce of the gradient of a replicated table (``table``: its bytes), then the update.

    The update costs ``update_multiple`` passes over the table at the memory's ``bandwidth``.
    TorchRec's all-reduce term assumes network cards only; ours uses the cluster's bottleneck.
    """
    return all_reduce_seconds(table, links) + table * update_multiple / bandwidth


def all_reduce_seconds(table: Numbers, links: Links) -> FloatArray:
    """All-reduce of gradients of ``table`` bytes each.

    Where it was measured by size, a small gradient takes its part of a call of ``links.fused``
    bytes; one beyond the last size has that one's bandwidth.
    """
    if not links.reduced:
        return table / links.all_reduce
    sizes, seconds = np.array(links.reduced).T
    call = np.maximum(np.maximum(table, links.fused), 1.0)
    found = np.interp(call, sizes, seconds)
    return table / call * found * np.maximum(call / sizes[-1], 1.0)
