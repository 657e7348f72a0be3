"""An Instance as TorchRec's own search space, to run its proposers and partitioner on it."""

from typing import Any

import numpy as np

from formulations import Block, Instance, InstanceBuilder, Objective, Shard, Where
from formulations.instance import BlockView

_SHARDING = {
    Where.EVERY_RANK: ("row_wise", "uniform"),
    Where.ANY_RANK: ("table_wise", "device"),
    Where.ONE_MACHINE: ("table_row_wise", "host"),
    Where.ANY_RANK_OF_ONE_MACHINE: ("table_column_wise", "host"),
}


def random_instance(
    seed: int, machines: int, local: int, tables: int, tight: float, unit: int = 1
) -> Instance:
    """Tables with every kind of option TorchRec partitions; DDR per rank, as TorchRec has it.

    ``unit`` multiplies all bytes.
    """
    rng = np.random.default_rng(seed)
    ranks = [[m * local + i for i in range(local)] for m in range(machines)]
    sizes = rng.integers(1, 1000, tables) * unit
    hbm = int(sizes.sum() * 8 * tight / (machines * local))
    ddr = int(sizes.sum() * 8 * 1.5 / (machines * local))
    builder = InstanceBuilder(
        ranks, ["p"], [("hbm", "rank", hbm), ("ddr", "rank", ddr)], Objective.BUSIEST_RANK
    )
    for table, size in enumerate(sizes.tolist()):
        builder.add_table(f"t{table}")
        for kernel in ("fused", "uvm"):
            for where, count in _shapes(machines, local):
                pieces = {
                    Where.EVERY_RANK: machines * local,
                    Where.ONE_MACHINE: local * count,
                }.get(where, count)
                piece = -(-size * 8 // pieces)
                use = {"hbm": piece} if kernel == "fused" else {"hbm": piece // 10, "ddr": piece}
                cost = int(rng.integers(1, 10**6)) * (1 if kernel == "fused" else 9)
                name = f"{_name(where, count)}/{kernel}"
                builder.add_option(name, [Block(where, [Shard(use, (cost,))], count)])
    return builder.build()


def _shapes(machines: int, local: int) -> list[tuple[Where, int]]:
    shapes = [(Where.EVERY_RANK, 1), (Where.ANY_RANK, 1), (Where.ANY_RANK, 3)]
    shapes += [(Where.ONE_MACHINE, 1), (Where.ANY_RANK_OF_ONE_MACHINE, 2)]
    return shapes + ([(Where.ONE_MACHINE, 2)] if machines > 2 else [])


def _name(where: Where, count: int) -> str:
    if where == Where.ONE_MACHINE and count > 1:
        return "grid_shard"
    return "column_wise" if where == Where.ANY_RANK and count > 1 else _SHARDING[where][0]


def search_space(instance: Instance) -> list[Any]:
    """A ``ShardingOption`` for every option of the instance, in its order."""
    import torch
    from torchrec.distributed.planner.types import ShardingOption

    result = []
    for option in range(instance.num_options):
        table = int(instance.table_of[option])
        block = instance.block(int(instance.option_blocks[option]))
        kind = instance.option_names[option].split("/")[0]
        partition_by = "multi_host" if kind == "grid_shard" else _SHARDING[block.where][1]
        result.append(
            ShardingOption(
                name=instance.table_names[table],
                tensor=torch.empty((1, 1), device="meta"),
                module=("m", torch.nn.Module()),
                input_lengths=[1.0],
                batch_size=1,
                sharding_type=kind,
                partition_by=partition_by,
                compute_kernel=str(option),
                shards=_shards(instance, block),
            )
        )
    return result


def _shards(instance: Instance, block: BlockView) -> list[Any]:
    from torchrec.distributed.planner.types import Perf, Shard, Storage

    local = len(instance.machines[0])
    pieces = {Where.EVERY_RANK: instance.num_ranks, Where.ONE_MACHINE: block.count * local}
    shards = []
    for position in range(pieces.get(block.where, block.count)):
        entry = block.entry(position)
        hbm, ddr = instance.shard_use[entry].tolist()
        perf = Perf(float(instance.shard_cost[entry].sum()), 0.0, 0.0, 0.0)
        shards.append(Shard(size=[1, 1], offset=[0, 0], storage=Storage(hbm, ddr), perf=perf))
    return shards


def topology(instance: Instance) -> Any:
    """TorchRec's description of the instance's cluster (all ranks alike)."""
    from torchrec.distributed.planner.types import Topology

    return Topology(
        world_size=instance.num_ranks,
        local_world_size=len(instance.machines[0]),
        compute_device="cuda",
        hbm_cap=int(instance.resources[0].capacity[0]),
        ddr_cap=int(instance.resources[1].capacity[0]),
    )
