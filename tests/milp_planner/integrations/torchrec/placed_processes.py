"""Two gloo processes of a stock planner with the callback of an exported plan."""

import importlib.util
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.types import ShardingPlan

from .two_processes import WORLD, joined, train_one_step


def place_of(path: str) -> Any:
    """The function ``place`` of an exported module."""
    spec = importlib.util.spec_from_file_location("placed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.place


def stock(path: str) -> EmbeddingShardingPlanner:
    """TorchRec's own planner, with nothing but the callback added."""
    topology = Topology(world_size=WORLD, local_world_size=WORLD, compute_device="cpu")
    return EmbeddingShardingPlanner(topology=topology, callbacks=[place_of(path)])


def run(rank: int, store: str, results: str, path: str) -> None:
    """Entry point of each process; writes its results to ``results``/rank."""

    def planned(module: nn.Module, sharders: list[Any]) -> ShardingPlan:
        return stock(path).collective_plan(module, sharders, dist.group.WORLD)

    with joined(rank, store):
        torch.save(train_one_step(rank, planned), f"{results}/{rank}")
