"""What each of two gloo processes does: plan together, shard, run forward and backward."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torchrec import EmbeddingBagCollection, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import ParameterConstraints, PlannerError
from torchrec.distributed.types import ShardingPlan
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from formulations import Settings
from milp_planner.integrations.torchrec import MilpShardingPlanner

WORLD = 2
RATE = 0.5
SHAPES = {
    "whole": (20, 8, ["table_wise"]),
    "columns": (30, 16, ["column_wise"]),
    "rows": (41, 8, ["row_wise"]),
    "host_rows": (37, 8, ["table_row_wise"]),
}
Shapes = Mapping[str, tuple[Any, ...]]


class AnySharder(EmbeddingBagCollectionSharder):
    """TorchRec's sharder, which offers on CPU what its runtime can do there."""

    def sharding_types(self, compute_device_type: str) -> list[str]:
        return ["table_wise", "column_wise", "row_wise", "table_row_wise"]


@contextmanager
def joined(rank: int, store: str, world: int = WORLD, local: int = 0) -> Iterator[None]:
    """This process as a rank of the gloo group, on machines of ``local`` ranks (or one)."""
    local = local or world
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank % local), WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(local),
    )  # fmt: skip
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    try:
        yield
    finally:
        dist.destroy_process_group()


def run(rank: int, store: str, results: str) -> None:
    """Entry point of each process; writes its results to ``results``/rank."""
    with joined(rank, store):
        seen = train_one_step(rank, _drop_in)
        seen["no_plan"] = _failure(_planner(ddr=10))
        seen["mistake"] = _failure(_planner(callbacks=[_divide_by_zero]))
        torch.save(seen, f"{results}/{rank}")


def constraints() -> dict[str, ParameterConstraints]:
    """One sharding type per table, and the fused kernel for all, which on CPU takes HBM's place."""
    return {
        name: ParameterConstraints(sharding_types=types, compute_kernels=["fused"], min_partition=8)
        for name, (_, _, types) in SHAPES.items()
    }


def collection(device: str, shapes: Shapes = SHAPES) -> EmbeddingBagCollection:
    """Tables of these rows and columns."""
    tables = [
        EmbeddingBagConfig(
            name=name, num_embeddings=rows, embedding_dim=dim, feature_names=[f"f_{name}"]
        )
        for name, (rows, dim, *_) in shapes.items()
    ]
    return EmbeddingBagCollection(device=torch.device(device), tables=tables)


def batch(rank: int, shapes: Shapes = SHAPES, least: int = 0) -> KeyedJaggedTensor:
    """A rank's batch of three samples, of ``least`` to three ids a table."""
    draw = torch.Generator().manual_seed(10 + rank)
    lengths = torch.randint(least, 4, (len(shapes) * 3,), generator=draw)
    values = [
        torch.randint(0, rows, (int(lengths[3 * i : 3 * i + 3].sum()),), generator=draw)
        for i, (rows, *_) in enumerate(shapes.values())
    ]
    return KeyedJaggedTensor(
        keys=[f"f_{name}" for name in shapes], values=torch.cat(values), lengths=lengths
    )


def _divide_by_zero(options: list[Any]) -> list[Any]:
    """A callback with a bug."""
    return options[: 1 // 0]


def _planner(ddr: int = 2**30, callbacks: list[Any] | None = None) -> MilpShardingPlanner:
    return MilpShardingPlanner(
        topology=Topology(
            world_size=WORLD, local_world_size=WORLD, compute_device="cpu", ddr_cap=ddr
        ),
        batch_size=3,
        constraints=constraints(),
        storage_reservation=FixedPercentageStorageReservation(0.0),
        stats=[],
        callbacks=callbacks,
        formulation="cpsat",
        settings=Settings(time_limit=10, workers=1),
    )


def _drop_in(module: nn.Module, sharders: list[Any]) -> ShardingPlan:
    return _planner().collective_plan(module, sharders, dist.group.WORLD)


def train_one_step(
    rank: int, plan_for: Callable[[nn.Module, list[Any]], ShardingPlan]
) -> dict[str, Any]:
    """Plan, shard, and run forward and backward once; then the same without sharding."""
    torch.manual_seed(7)
    reference = collection("cpu")
    weights = {name: p.detach().clone() for name, p in reference.state_dict().items()}
    module = collection("meta")
    apply_optimizer_in_backward(torch.optim.SGD, module.parameters(), {"lr": RATE})
    sharders = [AnySharder()]
    plan = plan_for(module, sharders)
    model = DistributedModelParallel(
        module, device=torch.device("cpu"), plan=plan, sharders=sharders
    )
    _load(model, weights)
    output = model(batch(rank)).values()
    output.square().sum().backward()
    expected, updated = unsharded(reference, rank, WORLD)
    return {
        "plan": {name: (p.sharding_type, p.ranks) for name, p in plan.plan[""].items()},
        "output": output.detach(),
        "expected": expected,
        "shards": _shards(model),
        "updated": updated,
    }


def unsharded(
    reference: nn.Module, rank: int, world: int
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """This rank's output, and the weights after one step on all ranks' batches.

    Sharded tables, and replicas after their averaging, have the gradient's mean over ranks.
    """
    outputs = [reference(batch(other)).values() for other in range(world)]
    sum(out.square().sum() for out in outputs).backward()  # type: ignore[union-attr]
    updated = {name: p.detach() - RATE * p.grad / world for name, p in reference.named_parameters()}
    return outputs[rank].detach(), updated


def _local(model: nn.Module) -> dict[str, Any]:
    return {name: value.local_shards() for name, value in model.state_dict().items()}


def _cut(weight: torch.Tensor, shard: Any) -> torch.Tensor:
    (row, column), (rows, columns) = shard.metadata.shard_offsets, shard.metadata.shard_sizes
    return weight[row : row + rows, column : column + columns]


def _load(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, shards in _local(model).items():
            for shard in shards:
                shard.tensor.copy_(_cut(weights[name.removeprefix("module.")], shard))


def _shards(model: nn.Module) -> list[tuple[str, list[int], list[int], torch.Tensor]]:
    return [
        (
            name.removeprefix("module."),
            list(shard.metadata.shard_offsets),
            list(shard.metadata.shard_sizes),
            shard.tensor.detach().clone(),
        )
        for name, shards in _local(model).items()
        for shard in shards
    ]


def _failure(planner: MilpShardingPlanner) -> str:
    """The error that collective_plan raises on this rank."""
    try:
        planner.collective_plan(collection("meta"), [AnySharder()], dist.group.WORLD)
    except PlannerError as error:
        return f"{error.error_type.value}: {error}"
    except ZeroDivisionError as error:
        return f"ZeroDivisionError: {error}"
    return "no failure"
