"""Bandwidths of a cluster's collectives at the sizes at which a job makes them.

One call carries all tables of a kind, and its time is no multiple of its bytes. So that the price
of a shard stays its own, every table pays its bytes' part of a call that exchanges all tables,
spread evenly over the ranks: bytes · T(S)/S at that call's size S.
"""

from __future__ import annotations

from dataclasses import replace

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.interconnect import Interconnect
from milp_planner.pricing.collectives import Collectives, CollectiveTable, Kind
from milp_planner.pricing.exchange import Links, links_of
from milp_planner.pricing.job import Job
from milp_planner.pricing.units import IntArray

BUCKET = 25 * 2**20
"""Bytes of gradients that torch's DistributedDataParallel reduces in one call (bucket_cap_mb)."""


def measured_links(job: Job, tables: Collectives) -> Links:
    """The cluster's links with the bandwidths that the tables give at the job's sizes.

    Where there is no table, the cluster's own bandwidths stay.
    """
    cluster, plain = job.cluster, job.links
    sent, back = (_output_bytes(job, w) for w in (job.tables.wire, job.tables.wire_backward))
    if job.ranks == 1 or sent <= 0:
        return plain

    def at(kind: Kind, size: float) -> Links:
        return links_of(_rated(cluster, tables, kind, size))

    swapped = at("all_to_all", sent)
    sums, gathered = sent * job.ranks, back * job.ranks
    all_ranks = at("reduce_scatter", sums), at("all_gather", gathered)
    group = at("reduce_scatter", sums / plain.groups), at("all_gather", gathered / plain.groups)
    size = job.tables.rows * job.tables.dim * job.tables.element
    return replace(
        plain,
        all_to_all=swapped.all_to_all,
        reduce_scatter=all_ranks[0].reduce_scatter,
        all_gather=all_ranks[1].reduce_scatter,
        local=group[0].local,
        local_gather=group[1].local,
        local_all_to_all=swapped.local_all_to_all,
        across=swapped.across,
        reduced=_all_reduces(cluster, tables),
        fused=float(min(size.sum(), BUCKET)),
    )


def _output_bytes(job: Job, wire: IntArray) -> float:
    """Bytes of a rank's embeddings of all tables in one step."""
    return float((job.traffic.outputs * job.tables.dim * wire).sum())


def _all_reduces(cluster: Cluster, tables: Collectives) -> tuple[tuple[float, float], ...]:
    """Bytes and seconds of all-reduces over all ranks, at the sizes that were measured."""
    if tables.all_reduce is None and tables.network is None:
        return ()
    whole = cluster if cluster.two_d is None else cluster.two_d.whole or cluster
    measured = [t for t in (tables.all_reduce, tables.network) if t is not None]
    sizes = sorted({size for table in measured for size, _ in table.points})
    rates = [links_of(_rated(whole, tables, "all_reduce", size)).all_reduce for size in sizes]
    return tuple((size, size / rate) for size, rate in zip(sizes, rates, strict=True))


def _rated(cluster: Cluster, tables: Collectives, kind: Kind, size: float) -> Cluster:
    """The cluster with the bandwidths that a collective of this size reaches."""
    links = cluster.interconnect
    if links is None:
        return cluster
    domains = links.domain_machines(len(cluster.machines))
    ranks = max(sum(len(cluster.machine_ranks[m]) for m in machines) for machines in domains)
    changed = _local(links, tables, kind, size, ranks)
    if links.inter_machine is not None:
        crossing = size * (len(domains) - 1) / len(domains)
        if kind != "all_to_all":  # the ranks of a domain share what they send as sums
            crossing *= (2 if kind == "all_reduce" else 1) / ranks
        changed["inter_machine"] = tables.card_bandwidth(crossing, links.inter_machine)
    return cluster.model_copy(update={"interconnect": links.model_copy(update=changed)})


def _local(
    links: Interconnect, tables: Collectives, kind: Kind, size: float, ranks: int
) -> dict[str, object]:
    table: CollectiveTable | None = getattr(tables, kind)
    if table is None or ranks == 1:
        return {}
    found: dict[str, object] = {
        "intra_machine": table.bus_bandwidth(size, ranks, links.intra_machine, kind)
    }
    if links.domains is not None:
        rate = table.bus_bandwidth(size, ranks, links.in_domain, kind)
        found["domains"] = links.domains.model_copy(update={"bandwidth": rate})
    return found
