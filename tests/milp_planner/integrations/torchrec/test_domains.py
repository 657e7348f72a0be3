"""TorchRec's topology of a cluster with NVLink domains."""

import pytest

pytest.importorskip("torchrec")

from torchrec.distributed.planner.types import CollectiveType

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.integrations.torchrec.domains import topology_of
from scenarios.catalog import find_cluster


def cluster(count: int, ranks: int, sizes: list[int]) -> Cluster:
    """Equal machines in domains of a given size."""
    return Cluster.from_dict(
        {
            "name": "c", "machines": count, "ranks_per_machine": ranks, "hbm": "80GiB",
            "ddr": "1TB",
            "interconnect": {"intra_machine": "400GB/s", "inter_machine": "50GB/s",
                             "domains": {"machines": sizes}},
        }
    )  # fmt: skip


def test_two_racks() -> None:
    """144 ranks, groups of 72: NVLink within a rack, the network between racks."""
    found = topology_of(find_cluster("2xgb200-nvl72"))
    assert (found.world_size, found.local_world_size, found.intra_group_size) == (144, 4, 72)
    speed = found.comms_bandwidths.get_bw
    assert speed(4, 72, CollectiveType.ALL_TO_ALL) == 900e6
    assert speed(4, 144, CollectiveType.ALL_TO_ALL) == 50e6
    assert speed(1, 2, CollectiveType.ALL_TO_ALL) == 50e6
    assert speed(4, 144, CollectiveType.ALL_REDUCE) == 200e6


def test_one_rack_is_all_nvlink() -> None:
    """Groups in the only domain are connected by NVLink, too."""
    found = topology_of(find_cluster("gb200-nvl72"))
    assert found.intra_group_size == 4
    assert found.comms_bandwidths.get_bw(1, 18, CollectiveType.ALL_TO_ALL) == 900e6


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (cluster(3, 2, [1, 2]), r"domains of \[1, 2\] machines"),
        (cluster(2, 1, [2]), "machines of one rank in a domain"),
        (find_cluster("mixed-h100"), "ranks or machines that differ"),
    ],
)
def test_what_torchrec_cannot_say(place: Cluster, sentence: str) -> None:
    """A cluster that TorchRec cannot express is refused in a sentence."""
    with pytest.raises(BadInput, match=sentence):
        topology_of(place)
