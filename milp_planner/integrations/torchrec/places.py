"""A TorchRec Topology as machines, capacities and the groups that hold machine-placed shards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torchrec.distributed.planner.types import Topology

from formulations import Scope

DdrScope = Literal["rank", "machine"]
Capacity = tuple[str, Scope, list[int]]

#: Name of the extra resource that keeps shards off ranks whose reservations exceed their memory.
USABLE = "usable"


@dataclass(frozen=True)
class Places:
    """Where shards may sit and what is there.

    Attributes
    ----------
    machines : tuple of tuples of int
        Partition of the ranks. Hosts (``local_world_size`` ranks) when DDR is pooled by machine,
        else the groups that TorchRec places machine-bound shards on.
    groups : tuple of tuples of int
        Runs of ``intra_group_size`` ranks (a host, or a pod of hosts): where table_row_wise and
        table_column_wise shards go. A remainder shorter than a group takes none.
    resources : tuple of (name, scope, capacities)
    usable : bool
        Whether every rank can hold something; if not, each shard takes one unit of
        :data:`USABLE`, which ranks overbooked by reservations have none of.
    """

    machines: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    resources: tuple[Capacity, ...]
    usable: bool

    @property
    def ranks(self) -> int:
        """Ranks in the topology."""
        return sum(len(machine) for machine in self.machines)

    @property
    def groups_are_machines(self) -> bool:
        """Whether the groups are exactly the machines, so that machine kinds can name them."""
        return self.groups == self.machines


def places(topology: Topology, ddr: DdrScope = "rank", with_ssd: bool = False) -> Places:
    """Read machines and capacities from a Topology (after reservations).

    Parameters
    ----------
    topology : Topology
        Capacities are taken device by device, so they may differ.
    ddr : {"rank", "machine"}
        ``rank`` is TorchRec's own rule; ``machine`` pools the DDR of a host's ranks.
    with_ssd : bool
        Whether some shard uses SSD.

    Returns
    -------
    Places
    """
    group, host = topology.intra_group_size, topology.local_world_size
    world = topology.world_size
    tiers = ("hbm", "ddr", "ssd") if with_ssd else ("hbm", "ddr")
    storage = [device.storage for device in topology.devices]
    free = {tier: [math.floor(getattr(s, tier)) for s in storage] for tier in tiers}
    machines = _runs(world, host if ddr == "machine" else group)
    resources: list[Capacity] = []
    for tier in tiers:
        per_rank = [max(0, amount) for amount in free[tier]]
        if tier == "ddr" and ddr == "machine":
            pooled = [max(0, sum(free[tier][r] for r in machine)) for machine in machines]
            resources.append((tier, Scope.MACHINE, pooled))
        else:
            resources.append((tier, Scope.RANK, per_rank))
    overbooked = [any(free[tier][rank] < 0 for tier in tiers) for rank in range(world)]
    if any(overbooked):
        resources.append((USABLE, Scope.RANK, [0 if bad else 2**40 for bad in overbooked]))
    return Places(
        machines=machines,
        groups=tuple(run for run in _runs(world, group) if len(run) == group),
        resources=tuple(resources),
        usable=not any(overbooked),
    )


def _runs(world: int, size: int) -> tuple[tuple[int, ...], ...]:
    starts = range(0, world, size)
    return tuple(tuple(range(start, min(start + size, world))) for start in starts)
