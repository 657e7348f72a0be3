"""What each of three gloo processes does: train, reshard while training, train on.

With three, every shard that moves can leave its rank; gloo, unlike NCCL, sends nothing to itself.
"""

import json
from typing import Any

import torch
from torch import nn
from torchrec import EmbeddingBagCollection, KeyedJaggedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from milp_planner.integrations.torchrec.reshard import reshard
from milp_planner.integrations.torchrec.sharding_plan import from_document

from .two_processes import AnySharder, batch, collection

WORLD = 3
SHAPES = {"whole": (20, 8), "columns": (30, 16), "stays": (24, 8), "rows": (41, 8)}


def seen_by(rank: int, before: str, moves: str) -> dict[str, Any]:
    """What each process sees."""
    moving, staying = _model(before), _model(before)
    seen: dict[str, Any] = {}
    for model in (moving, staying):
        _step(model, rank)
    seen["before"] = moving(_batch(rank)).detach()
    seen["volume"] = reshard(moving, moves)
    seen["after"] = moving(_batch(rank)).detach()
    seen["ranks"] = {
        name: [shard.metadata.placement.rank() for shard in value.local_shards()]
        for name, value in _sharded(moving).items()
    }
    for model in (moving, staying):  # the optimizer's state moved as well
        _step(model, rank)
    seen["trained"] = moving(_batch(rank)).detach()
    seen["expected"] = staying(_batch(rank)).detach()
    return seen


def on_cpu(document: dict[str, Any]) -> str:
    """An export for GPUs with its shards on CPUs."""
    text = json.dumps({**document, "compute_device": "cpu"})
    return text.replace("/cuda:0", "/cpu").replace("/cuda:1", "/cpu").replace("/cuda:2", "/cpu")


class Model(nn.Module):
    """The tables inside a model with a dense part: TorchRec reshards nothing without one."""

    def __init__(self, bags: EmbeddingBagCollection) -> None:
        super().__init__()
        self.bags = bags
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, batch: KeyedJaggedTensor) -> Any:
        return self.bags(batch).values() * self.scale


def _model(before: str) -> DistributedModelParallel:
    torch.manual_seed(7)
    weights = collection("cpu", SHAPES).state_dict()
    module = collection("meta", SHAPES)
    apply_optimizer_in_backward(RowWiseAdagrad, module.parameters(), {"lr": 0.1})
    model = DistributedModelParallel(
        Model(module),
        device=torch.device("cpu"),
        plan=from_document(before),
        sharders=[AnySharder()],
    )
    with torch.no_grad():
        for name, value in _sharded(model).items():
            for shard in value.local_shards():
                (row, column), (rows, columns) = (
                    shard.metadata.shard_offsets, shard.metadata.shard_sizes
                )  # fmt: skip
                whole = weights[name.removeprefix("bags.")]
                shard.tensor.copy_(whole[row : row + rows, column : column + columns])
    return model


def _sharded(model: DistributedModelParallel) -> dict[str, Any]:
    return {name: value for name, value in model.state_dict().items() if ".bags" in f".{name}"}


def _step(model: DistributedModelParallel, rank: int) -> None:
    model(_batch(rank)).square().sum().backward()


def _batch(rank: int) -> KeyedJaggedTensor:
    return batch(rank, SHAPES, least=1)
