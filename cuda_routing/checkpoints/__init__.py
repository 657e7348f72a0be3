"""Checkpoints of dynamic embedding tables: save, load, and re-shard without losing a row."""

from cuda_routing.checkpoints.load import CheckpointInfo, inspect, load_shard
from cuda_routing.checkpoints.reshard import Resharded, reshard
from cuda_routing.checkpoints.save import save_shard
from cuda_routing.checkpoints.shards import Shard

__all__ = [
    "CheckpointInfo",
    "Resharded",
    "Shard",
    "inspect",
    "load_shard",
    "reshard",
    "save_shard",
]
