"""The ranks of a plan by milp-planner, for TorchRec's own planner.

One argument more, and the trainer runs the plan exactly::

    from placed import place  # this file

    EmbeddingShardingPlanner(..., callbacks=[place])

After the planner has chosen, ``place`` replaces type, kernel, shards and ranks of every table by
the plan's. It raises ValueError, and nothing is sharded, if the tables are not those of the plan,
or if a rank would hold more than was planned for it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

PLAN: dict[str, Any] = json.loads(r"""{}""")


def place(options: list[Any]) -> list[Any]:
    """The sharding options of TorchRec's planner, with the plan's types, kernels and ranks."""
    entries = {name: entry for tables in PLAN["plan"].values() for name, entry in tables.items()}
    ours = [option for option in options if option.name not in PLAN["left_to_dynamicemb"]]
    names = {option.name for option in ours}
    for what, lost in (("plan", names - {*entries}), ("model", {*entries} - names)):
        if lost:
            raise ValueError(f"the {what} has no table {min(lost)!r}")
    held = [0] * PLAN["world_size"]
    for option in ours:
        _set(option, entries[option.name])
        for shard in option.shards:
            held[shard.rank] += shard.storage.hbm
    _check(held)
    return options


def _set(option: Any, entry: dict[str, Any]) -> None:
    """Give one table its type, kernel, load factor and shards."""
    from torchrec.distributed.planner.enumerators import get_partition_by_type
    from torchrec.distributed.planner.types import Perf, Shard, Storage
    from torchrec.distributed.types import CacheParams

    rows, columns = option.tensor.shape
    if [rows, columns] != entry["shape"]:
        raise ValueError(f"table {option.name!r} has shape {[rows, columns]}, not {entry['shape']}")
    kind, factor = entry["sharding_type"], entry["cache_load_factor"]
    whole = [{"shard_sizes": [rows, columns], "shard_offsets": [0, 0]}] * len(entry["ranks"])
    share = {"fused_uvm": 0.0, "fused_uvm_caching": factor}.get(entry["compute_kernel"], 1.0)
    option.sharding_type, option.compute_kernel = kind, entry["compute_kernel"]
    option.partition_by = get_partition_by_type(kind)
    if factor is not None:
        params = option.cache_params or CacheParams()
        option.cache_params = dataclasses.replace(params, load_factor=factor)
    option.shards = []
    for shard, rank in zip(entry.get("shards", whole), entry["ranks"], strict=True):
        size, offset = [*shard["shard_sizes"]], [*shard["shard_offsets"]]
        held = size[0] * size[1] * option.tensor.element_size()
        storage = Storage(hbm=int(held * share), ddr=0 if share == 1.0 else held)
        perf = Perf(fwd_compute=0.0, fwd_comms=0.0, bwd_compute=0.0, bwd_comms=0.0)
        option.shards.append(Shard(size=size, offset=offset, storage=storage, perf=perf, rank=rank))


def _check(held: list[int]) -> None:
    """Refuse ranks with more bytes of rows in HBM than planned, and GPUs smaller than planned."""
    import torch

    for rank, (found, planned) in enumerate(zip(held, PLAN["rows_in_hbm"], strict=True)):
        if found > planned:
            raise ValueError(f"rank {rank} would hold {found} bytes of rows, not {planned}")
    if torch.cuda.is_available():
        found = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        if found < PLAN["hbm"]:
            raise ValueError(f"this GPU has {found} bytes; the plan fills up to {PLAN['hbm']}")
