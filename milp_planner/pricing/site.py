"""The properties of clusters and tables that decide which choices are legal."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import Constraints, DistType
from milp_planner.inputs.interconnect import runs_of


@dataclass(frozen=True)
class Site:
    """The properties of a cluster that decide which choices are legal."""

    machine_ranks: tuple[tuple[int, ...], ...]
    """Ranks of each machine."""
    cpu_only: bool
    """Whether no rank has HBM: everything then lives in DDR."""
    has_ssd: bool = False
    """Whether any machine has SSD."""
    span: int = 1
    """Machines over which table-row-wise and grid shards split rows."""
    replicated: bool = False
    """Whether other sharding groups hold copies of the same tables."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return sum(map(len, self.machine_ranks))

    @property
    def row_groups(self) -> tuple[tuple[int, ...], ...]:
        """Ranks of each run of ``span`` machines."""
        return runs_of(self.machine_ranks, self.span)


def site_of(cluster: Cluster) -> Site:
    """The site of a cluster."""
    replicated = cluster.replicas > 1
    return Site(cluster.machine_ranks, cluster.cpu_only, cluster.has_ssd, cluster.span, replicated)


@dataclass(frozen=True)
class TableTraits:
    """The properties of a table that decide which choices are legal.

    Tables with equal traits share one enumeration.
    """

    kind: str
    output: str
    dim: int
    constraints: Constraints
    ratios: tuple[Fraction, ...]
    dist_types: tuple[DistType, ...]
    fuses: bool
    virtual: bool
    l1_ratios: tuple[Fraction, ...]
    """Cache ratios in a key-value store; empty if the table cannot be in one."""
    no_store: str
    """Why the table cannot be in a key-value store; empty if it can."""
    stash: tuple[bool, ...]
    """Whether weights leave HBM between forward and backward (True), stay (False), or both are
    offered; none if the table must be stashed and cannot be."""
    stash_caches: bool
    """Whether caches may leave HBM there, too."""
