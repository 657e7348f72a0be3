"""Machines, groups and capacities of a Topology."""

from __future__ import annotations

import pytest
from torchrec.distributed.planner.types import CustomTopologyData, Topology

from formulations import Scope
from milp_planner.integrations.torchrec.blocks import USABLE, places

from .models import topology


def test_hosts_are_machines() -> None:
    """Two hosts of two ranks; DDR per rank as TorchRec counts it."""
    found = places(topology(4, 2, hbm=100, ddr=7))
    assert found.machines == ((0, 1), (2, 3)) == found.groups
    assert found.resources == (("hbm", Scope.RANK, [100] * 4), ("ddr", Scope.RANK, [7] * 4))
    assert found.usable and found.ranks == 4


def test_ddr_pooled_by_machine() -> None:
    """Pooled by machine, DDR is the sum over the host's ranks."""
    found = places(topology(4, 2, hbm=100, ddr=7), ddr="machine")
    assert found.resources[1] == ("ddr", Scope.MACHINE, [14, 14])


def test_pods_hold_machine_bound_shards() -> None:
    """With pods of two hosts, groups are pods while pooled DDR stays with the host."""
    pods = topology(8, 2, pod_size=2)
    assert places(pods).machines == ((0, 1, 2, 3), (4, 5, 6, 7)) == places(pods).groups
    pooled = places(pods, ddr="machine")
    assert pooled.machines == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert pooled.groups == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_remainder_of_ranks_takes_no_machine_bound_shards() -> None:
    """TorchRec rounds the number of hosts down; the ranks left over remain ranks."""
    found = places(topology(5, 2))
    assert found.machines == ((0, 1), (2, 3), (4,))
    assert found.groups == ((0, 1), (2, 3))
    assert not found.groups_are_machines


def test_capacities_differ_by_rank() -> None:
    """Custom topology data gives every rank its own capacity."""
    custom = CustomTopologyData({"hbm_cap": [5, 9]}, world_size=2)
    found = places(Topology(2, "cuda", custom_topology_data=custom, ddr_cap=3))
    assert found.resources[0] == ("hbm", Scope.RANK, [5, 9])


@pytest.mark.parametrize("ddr", ["rank", "machine"])
def test_overbooked_rank_is_closed(ddr: str) -> None:
    """A rank whose reservations exceed its memory takes no shard, not even an empty one."""
    reserved = topology(2, 2, hbm=10)
    reserved.devices[1].storage.hbm = -1
    found = places(reserved, ddr)  # type: ignore[arg-type]
    assert not found.usable
    name, _, capacity = found.resources[-1]
    assert name == USABLE and capacity[0] > 0 and capacity[1] == 0
    assert found.resources[0][2] == [10, 0]


def test_ssd_only_where_used() -> None:
    """SSD is a resource only if some shard uses it."""
    assert [name for name, _, _ in places(topology(2), with_ssd=True).resources] == [
        "hbm",
        "ddr",
        "ssd",
    ]
