"""What each of two gloo processes does: plan together, shard, run forward and backward; and what
they saw, against the unsharded module."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torchrec import EmbeddingBagCollection, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import ShardingPlan
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

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


def in_processes(
    body: Callable[..., dict[str, Any]], folder: Path, *given: Any, world: int = WORLD,
    local: int = 0,
) -> list[dict[str, Any]]:  # fmt: skip
    """What ``body(rank, *given)`` returns in each of so many processes of one gloo group.

    They are forked from one that has imported TorchRec, and so agree in the hashes of names, with
    which TorchRec tags its messages.
    """
    multiprocessing.set_forkserver_preload(["milp_planner.integrations.torchrec"])
    mp.start_processes(
        _enter, (body, str(folder), world, local, given), nprocs=world, start_method="forkserver"
    )
    return saved(folder, world)


def _enter(
    rank: int, body: Callable[..., Any], folder: str, world: int, local: int, given: tuple[Any, ...]
) -> None:
    with joined(rank, f"{folder}/store", world, local):
        torch.save(body(rank, *given), f"{folder}/{rank}")


def saved(folder: Path, world: int = WORLD) -> list[dict[str, Any]]:
    """The results that each process wrote."""
    return [torch.load(folder / str(r), weights_only=False) for r in range(world)]


def assert_trained_alike(seen: list[dict[str, Any]], copies: int = 1) -> None:
    """There is one plan; each rank's output and every shard after one SGD step agree to 1e-5, and
    all tables are there so many times."""
    assert all(rank.get("plan") == seen[0].get("plan") for rank in seen)
    covered = 0
    for rank in seen:
        assert rank["output"].abs().sum() > 0
        torch.testing.assert_close(rank["output"], rank["expected"], rtol=1e-5, atol=1e-6)
        for name, (row, column), (rows, columns), weight in rank["shards"]:
            expected = rank["updated"][name][row : row + rows, column : column + columns]
            torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)
            covered += rows * columns
    assert covered == copies * sum(rows * dim for rows, dim, _ in SHAPES.values())


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
