"""What several parts ask of TorchRec's sharding options."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn
from torchrec.distributed.planner.types import Shard, ShardingOption, Storage
from torchrec.distributed.types import ModuleSharder


def sharder_of(
    option: ShardingOption, sharders: Sequence[ModuleSharder[nn.Module]]
) -> ModuleSharder[nn.Module] | None:
    """The sharder of an option's module."""
    return next((s for s in sharders if isinstance(option.module[1], s.module_type)), None)


def fused_of(
    option: ShardingOption, sharders: Sequence[ModuleSharder[nn.Module]]
) -> Mapping[str, Any]:
    """``fused_params`` of the sharder of an option's module."""
    return getattr(sharder_of(option, sharders), "fused_params", None) or {}


def with_storage(
    option: ShardingOption, storage: Callable[[Shard, Storage], Storage]
) -> ShardingOption:
    """A copy of an option whose shards are copies that take other bytes, where they take any."""
    made = copy.copy(option)
    made.shards = [copy.copy(shard) for shard in option.shards]
    for shard in made.shards:
        if shard.storage is not None:
            shard.storage = storage(shard, shard.storage)
    return made
