"""NVLink domains for TorchRec's estimator, whose two default bandwidths cannot express them.

TorchRec counts the hosts of a domain in ``Topology(pod_size=…)`` and cuts table-row-wise and grid
shards over them, but prices every exchange of more than a host's ranks at the network's speed. A
``GeneralizedCommsBandwidth`` can correct that.
"""

from __future__ import annotations

from torchrec.distributed.planner.types import (
    CollectiveType,
    GeneralizedCommsBandwidth,
    Topology,
)

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.pricing.profile import load_profile

PER_MS = 1000


class DomainBandwidths(GeneralizedCommsBandwidth):
    """NVLink among the ranks of a domain, the network beyond; bytes per millisecond.

    Parameters
    ----------
    intra, inter : float
        Bandwidth of one rank inside its domain and between domains.
    domain_ranks : int
        Ranks of a domain.

    Notes
    -----
    TorchRec passes the ranks on a host and the ranks of the collective. For the second leg of
    table-row-wise, between groups, it passes one rank per host, which looks the same as hosts of a
    single GPU. An all-reduce keeps TorchRec's rule: all network cards of a host.
    """

    def __init__(self, intra: float, inter: float, domain_ranks: int) -> None:
        self.intra, self.inter, self.domain_ranks = intra, inter, domain_ranks

    @property
    def intra_host_bw(self) -> float:
        """Bytes per millisecond of one rank inside its domain."""
        return self.intra

    @property
    def inter_host_bw(self) -> float:
        """Bytes per millisecond of one rank between domains."""
        return self.inter

    def get_bw(
        self, local_world_size: int, world_size: int, collective_type: CollectiveType
    ) -> float:
        """Bytes per millisecond of a collective of ``world_size`` ranks."""
        if collective_type == CollectiveType.ALL_REDUCE:
            return self.inter * local_world_size
        across = local_world_size == 1 or world_size > self.domain_ranks
        return self.inter if across else self.intra


def topology_of(cluster: Cluster) -> Topology:
    """TorchRec's topology of a cluster, with its domains.

    Capacities are taken as they are (TorchRec makes the reservations), DDR in equal shares per
    rank. BadInput if ranks, machines or domains differ, or if machines of one rank are in a domain.
    """
    first, links = cluster.machines[0], cluster.interconnect
    size = len(first.ranks)
    domains = () if links is None else links.domain_machines(len(cluster.machines))
    counts = {len(machines) for machines in domains}
    if any(machine != first for machine in cluster.machines) or len({*first.ranks}) > 1:
        raise _refused(cluster, "ranks or machines that differ", "equal ones")
    if len(counts) > 1:
        raise _refused(cluster, f"domains of {sorted(counts)} machines", "equal ones")
    hosts = counts.pop() if counts else 1
    if hosts > 1 and size == 1:
        raise _refused(cluster, "machines of one rank in a domain", "two ranks or more")
    profile = load_profile(cluster.profile)
    bandwidths = {}
    if links is not None:
        within, network = links.in_domain / PER_MS, (links.inter_machine or 0) / PER_MS
        between = network if len(domains) > 1 else within
        bandwidths["generalized_comms_bandwidths"] = DomainBandwidths(within, between, hosts * size)
    return Topology(
        world_size=cluster.num_ranks,
        local_world_size=size,
        compute_device="cpu" if cluster.cpu_only else "cuda",
        pod_size=cluster.span if cluster.span > 1 else None,
        hbm_cap=first.ranks[0].hbm_bytes,
        ddr_cap=first.ddr_bytes // size,
        hbm_mem_bw=profile.hbm / PER_MS,
        ddr_mem_bw=profile.ddr / PER_MS,
        hbm_to_ddr_mem_bw=profile.host_link / PER_MS,
        **bandwidths,
    )


def _refused(cluster: Cluster, found: str, allowed: str) -> BadInput:
    return BadInput(f"cluster {cluster.name!r}: found {found}; allowed for TorchRec: {allowed}")
