"""TorchRec's ShardingPlan object and its JSON document, both ways.

The document is that of :mod:`milp_planner.integrations.exports.torchrec`; it holds the fields that
decide a sharding: type, kernel, ranks, shards, cache load factor, sizes of a key-value store. Other
fields of ``ParameterSharding`` (stochastic rounding, bounds checks, …) are left at TorchRec's
defaults.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from torch.distributed._shard.sharding_spec import EnumerableShardingSpec, ShardMetadata
from torchrec.distributed.types import (
    CacheParams,
    EmbeddingModuleShardingPlan,
    KeyValueParams,
    ParameterSharding,
    ShardingPlan,
)

from milp_planner.errors import BadInput
from milp_planner.integrations.exports.torchrec import FORMAT, entries

_SIZES = ("max_l1_cache_size", "l2_cache_size", "ssd_rocksdb_write_buffer_size")
"""Fields of ``KeyValueParams`` that a document holds."""


def to_document(
    plan: ShardingPlan, world_size: int, local_world_size: int, compute_device: str
) -> dict[str, Any]:
    """A ShardingPlan as JSON values; the device is ``cuda``, ``cpu`` or ``mtia``."""
    return {
        "format": FORMAT,
        "world_size": world_size,
        "local_world_size": local_world_size,
        "compute_device": compute_device,
        "plan": {
            path: {name: _entry(table) for name, table in module.items()}
            for path, module in plan.plan.items()
        },
        "left_to_dynamicemb": [],
    }


def from_document(document: dict[str, Any] | str) -> ShardingPlan:
    """The ShardingPlan of a document, ready for ``DistributedModelParallel``.

    Raises
    ------
    BadInput
        If it is no such document, or a table's entry is incomplete.
    """
    text = document if isinstance(document, str) else json.dumps(document)
    plan: dict[str, EmbeddingModuleShardingPlan] = {}
    for path, name, entry in entries(text):
        module = plan.setdefault(path, EmbeddingModuleShardingPlan())
        module[name] = sharding(name, entry)
    return ShardingPlan(plan)


HAS_NODES = "num_nodes" in ParameterSharding.__dataclass_fields__
"""Whether the installed TorchRec splits a table's rows over several machines."""


def sharding(name: str, entry: dict[str, Any]) -> ParameterSharding:
    """The ParameterSharding of a table's entry; BadInput if that is incomplete, or if the installed
    TorchRec cannot split rows as it says."""
    several = entry.get("num_nodes")
    if several is not None and not HAS_NODES:
        raise BadInput(
            f"table {name!r}: rows over {several} machines need num_nodes, which TorchRec "
            f"{version('torchrec')} does not have (pull requests 4681 to 4683)"
        )
    try:
        found = _sharding(entry)
        return found if several is None else replace(found, num_nodes=several)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"table {name!r}: its entry is incomplete ({error})") from None


def _entry(table: ParameterSharding) -> dict[str, Any]:
    caching = table.compute_kernel.endswith("uvm_caching") and table.cache_params is not None
    entry: dict[str, Any] = {
        "sharding_type": table.sharding_type,
        "compute_kernel": table.compute_kernel,
        "ranks": table.ranks,
        "cache_load_factor": table.cache_params.load_factor if caching else None,
    }
    if (several := getattr(table, "num_nodes", None)) is not None:
        entry["num_nodes"] = several
    stored = table.key_value_params
    if stored is not None:
        entry["key_value_params"] = {name: getattr(stored, name) for name in _SIZES}
    if table.sharding_spec is not None:
        entry["shards"] = [
            {
                "shard_offsets": list(shard.shard_offsets),
                "shard_sizes": list(shard.shard_sizes),
                "placement": str(shard.placement),
            }
            for shard in table.sharding_spec.shards
        ]
    return entry


def _sharding(entry: dict[str, Any]) -> ParameterSharding:
    shards = entry.get("shards")
    factor = entry.get("cache_load_factor")
    stored = entry.get("key_value_params")
    return ParameterSharding(
        sharding_type=entry["sharding_type"],
        compute_kernel=entry["compute_kernel"],
        ranks=list(entry["ranks"]),
        cache_params=None if factor is None else CacheParams(load_factor=factor),
        key_value_params=None if stored is None else KeyValueParams(**stored),
        sharding_spec=None
        if shards is None
        else EnumerableShardingSpec(
            [
                ShardMetadata(
                    shard_offsets=shard["shard_offsets"],
                    shard_sizes=shard["shard_sizes"],
                    placement=shard["placement"],
                )
                for shard in shards
            ]
        ),
    )
