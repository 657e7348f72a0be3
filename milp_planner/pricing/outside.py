"""HBM that every rank uses in any placement, and the room left for shards at each moment."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.pricing.entries import DENSE, RANK_ENTRIES, RANK_NAMES, moments_of
from milp_planner.pricing.job import table_columns, traffic_of
from milp_planner.pricing.units import IntArray


def exchange_bytes(model: Model, ranks: int) -> dict[str, int]:
    """Bytes of every entry of :data:`RANK_ENTRIES` on one rank, the same for every placement.

    Each is Σ over tables of embeddings of the rank's own batch · dim · bytes per element, which are
    e as looked up and w on the wire; on a single rank nothing is on the wire. If ids are
    deduplicated, only distinct embeddings count. Inference has no gradients.

    ``activations``, ``activation_gradients`` : e.
    ``receive_buffer`` : w; 0 if a codec clamps: the clamped copy is freed before this buffer is
    allocated, and is larger whenever the moment matters.
    ``received`` : w as it arrives, + e decoded, before it is reordered for the batch.
    ``sent_gradients`` : 2 · e, reordered for sending; pooled tables with a codec that clamps: 2 · e
    + w, one e being the clamped copy.
    ``held_gradients`` : e of pooled tables without a codec, whose gradients are sent as they are.

    TorchRec's reduce-scatters (pooled, row-wise) need less; they are charged like the others.
    """
    if model.workload.storage_model != "runtime":
        return dict.fromkeys(RANK_NAMES, 0)
    tables, traffic = table_columns(model), traffic_of(model, ranks, needs_distinct=False)
    cells = traffic.outputs * tables.dim
    element, clamps = tables.output, model.workload.codec == "stock"
    kept = math.ceil(float((cells * element).sum()))
    coded = ranks > 1
    forward, backward = tables.wire != element, tables.wire_backward != element
    received = np.where(forward, tables.wire + element, element)
    clamped = np.where(backward & tables.pooled & clamps, tables.wire_backward, 0)

    def whole(each: IntArray) -> int:
        return math.ceil(float((cells * each).sum())) * coded

    trains = model.workload.trains
    return {
        "receive_buffer": whole(np.where(forward & clamps, 0, tables.wire)),
        "activations": kept,
        "received": whole(received),
        "activation_gradients": kept * trains,
        "sent_gradients": whole(2 * element + clamped) * trains,
        "held_gradients": whole(np.where(backward | ~tables.pooled, 0, element)) * trains,
    }


OUTSIDE = {
    "measured": "measured peak outside the embeddings",
    "dense": "dense parameters, with gradients and optimizer",
    "dense_activations": "dense activations: bytes a sample · samples",
    "context": "library's context, communication buffers",
    "batch": "ids of the batch in the model: kjt_multiple · 8 · ids",
    "further": "further bytes reserved on every rank",
    "rank": "reserved on this rank alone",
    "reserved": "percentage reserved, less the headroom",
    "assumed": "assumed outside the embeddings, less the headroom",
    "dense_part": "dense activations, in the dense part alone",
    "fragmentation": "held unused by the allocator: reserved less allocated bytes",
    "headroom": "must stay free",
    "host_tables": "rows and optimizer state in host memory; buffers of key-value stores there",
    "ssd_rows": "rows of tables on SSD, with their keys",
    "stale_rows": "overwritten rows that RocksDB may keep: space_amplification - 1 times these",
    "loaders": "batches that data loaders keep ready",
    "checkpoint_staging": "rows and optimizer state, copied for a checkpoint",
}
"""Entries outside the embeddings, in host memory and on SSD."""


class Reserved(NamedTuple):
    """Memory outside the embeddings on one rank: entries in bytes, for drawing the ledger."""

    entries: dict[str, int]
    assumed: str | None
    """A sentence about what was assumed because the input does not say."""


def outside(model: Model, cluster: Cluster, hbm: int, own: int = 0) -> Reserved:
    """Memory that a rank with ``hbm`` bytes keeps for everything else, entry by entry.

    Parameters
    ----------
    model : Model
    cluster : Cluster
    hbm : int
        Bytes of the rank's HBM.
    own : int
        Bytes that this rank alone reserves.

    References
    ----------
    ``fragmentation``: PyTorch 2.13, ``torch.cuda.memory_stats``: ``reserved_bytes`` less
    ``allocated_bytes`` (blocks that are split or cached, and fit no request).
    """
    held = cluster.reservations
    percent = cluster.outside_percent(model)
    fixed = cluster.fixed_hbm(model)
    found = {name: math.ceil(amount) for name, amount in fixed.items() if amount}
    if own:
        found["rank"] = own
    name = "assumed" if held.hbm_percent is None else "reserved"
    found[name] = math.ceil(hbm * (percent - held.min_headroom) / 100)
    found["fragmentation"] = math.ceil(hbm * held.fragmentation / 100)
    found["headroom"] = math.ceil(hbm * held.min_headroom / 100)
    assumed = None
    if not cluster.says_outside(model) and held.hbm_percent is None and not cluster.cpu_only:
        assumed = (
            f"outside the embeddings, {float(percent):g}% of each rank's HBM is assumed, as by "
            "TorchRec; say what you know under outside_embeddings in the model"
        )
    return Reserved({name: amount for name, amount in found.items() if amount}, assumed)


def assumed_ddr(model: Model, cluster: Cluster) -> str | None:
    """A sentence about host memory that was assumed because the input does not say."""
    held = cluster.reservations
    if model.host_memory is not None or held.ddr_bytes or held.ddr_percent:
        return None
    if not any(machine.ddr_bytes for machine in cluster.machines):
        return None
    return "no host memory is reserved for data loaders and checkpoints (the model's host_memory)"


def outside_ddr(model: Model, cluster: Cluster, machine: int) -> dict[str, int]:
    """DDR that a machine keeps for everything else, entry by entry, headroom included."""
    held, ddr = cluster.reservations, cluster.machines[machine].ddr_bytes
    found = {
        "reserved": math.ceil(ddr * max(Fraction(0), held.ddr_percent - held.min_headroom) / 100),
        "further": held.ddr_bytes,
        "loaders": len(cluster.machines[machine].ranks) * model.loader_bytes,
        "headroom": math.ceil(ddr * held.min_headroom / 100),
    }
    return {name: amount for name, amount in found.items() if amount}


def capacities(model: Model, cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """HBM in bytes that shards may use at each moment, for each rank; never below 0."""
    usable = cluster.usable_hbm(model)
    if model.workload.storage_model != "runtime" or cluster.cpu_only:
        return dict.fromkeys(moments_of(model.grows), usable)
    exchange = exchange_bytes(model, cluster.num_ranks)
    return {
        moment: tuple(max(0, room - fixed) for room in usable)
        for moment in moments_of(model.grows)
        for fixed in [at_moment(exchange, moment) + dense_part(cluster, moment)]
    }


def dense_part(cluster: Cluster, moment: str) -> int:
    """Bytes of every rank that are reserved for this moment alone."""
    return cluster.reservations.activations if moment == DENSE else 0


def at_moment(exchange: dict[str, int], moment: str) -> int:
    """Bytes of the ranks' entries that are alive at a moment."""
    return sum(exchange[entry.name] for entry in RANK_ENTRIES if moment in entry.moments)
