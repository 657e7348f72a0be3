"""TorchRec's own partition and storage checks, run over a plan that already has ranks."""

import copy
from collections.abc import Sequence

from torchrec.distributed.planner.partitioners import GreedyPerfPartitioner
from torchrec.distributed.planner.types import DeviceHardware, ShardingOption, Topology


def assert_torchrec_accepts(plan: Sequence[ShardingOption], reserved: Topology) -> None:
    """Replay a plan through TorchRec's partitioner, which deducts storage and refuses overflow.

    TorchRec's step for each kind of option gets only the chosen devices; it raises ``PlannerError``
    if one does not fit, and the ranks it sets must be the plan's.
    """
    devices = copy.deepcopy(reserved.devices)
    hosts = GreedyPerfPartitioner._get_host_level_devices(reserved, devices)
    for option in plan:
        replayed = copy.deepcopy(option)
        ranks = [shard.rank for shard in option.shards]
        _replay(replayed, [int(rank) for rank in ranks if rank is not None], devices, hosts)
        assert [shard.rank for shard in replayed.shards] == ranks, option.fqn


def _replay(
    option: ShardingOption,
    ranks: list[int],
    devices: list[DeviceHardware],
    hosts: list[list[DeviceHardware]],
) -> None:
    chosen = [devices[rank] for rank in ranks]
    if option.partition_by in ("host",):
        home = [host for host in hosts if {d.rank for d in host} >= set(ranks)]
        assert len(home) == 1, f"{option.fqn} leaves its host: {ranks}"
    if option.partition_by == "uniform":
        assert [d.rank for d in chosen] == [d.rank for d in devices]
    if option.sharding_type == "table_row_wise":
        assert [d.rank for d in home[0]] == ranks
    if option.sharding_type == "grid_shard":
        size = len(hosts[0])
        used = [tuple(ranks[i : i + size]) for i in range(0, len(ranks), size)]
        known = {tuple(d.rank for d in host) for host in hosts}
        assert set(used) <= known
        if len(used) <= len(hosts):
            assert len(set(used)) == len(used)
    if option.sharding_type in ("table_wise", "column_wise", "table_column_wise"):
        for shard, device in zip(option.shards, chosen, strict=True):
            single = copy.copy(option)
            single.shards = [shard]
            heap = GreedyPerfPartitioner._establish_minheap([device], len(hosts[0]))
            GreedyPerfPartitioner._device_partition(single, heap)
    else:
        GreedyPerfPartitioner._uniform_partition([option], chosen)
