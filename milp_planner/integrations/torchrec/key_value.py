"""Real memory of TorchRec's key-value and virtual tables, in place of its planner's count.

TorchRec 1.9.2 charges a shard with min(max_l1_cache_size, a fifth of the whole table) of HBM, or
nothing if no L1 is given (meta-pytorch/torchrec issue 3783), with no host memory, and virtual
tables with nothing else. The bytes here are those of
:mod:`milp_planner.pricing.runtimes.key_value`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from torch import nn
from torchrec.distributed.planner.types import Shard, ShardingOption, Storage
from torchrec.distributed.types import KeyValueParams, ModuleSharder

from milp_planner.integrations.torchrec.options import fused_of, with_storage
from milp_planner.pricing.options import STORES
from milp_planner.pricing.runtimes.key_value import (
    EVICTED_BYTES,
    HEADER_BYTES,
    KEY_BYTES,
    MAP_BYTES,
    MEBIBYTE,
    SLOT_BYTES,
    cache_slots,
)

StoreBytes = Literal["runtime", "torchrec"]
COMPOSITE = "dram_ssd_virtual_table"
WRITE_BUFFER = 2 * 2**30
"""``ssd_rocksdb_write_buffer_size`` if none is given."""
_DEFAULT_FACTOR = 0.2


def as_the_runtime(
    options: Sequence[ShardingOption], sharders: Sequence[ModuleSharder[nn.Module]]
) -> list[ShardingOption]:
    """The options; those in a key-value store are copies with the kernel's real bytes.

    Ids, outputs and times stay TorchRec's. A virtual table is charged for all rows of its tensor.
    Optimizer state is that of the sharder's ``optimizer`` in ``fused_params``, by default row-wise
    Adagrad.
    """
    return [
        _charged(option, fused_of(option, sharders))
        if option.compute_kernel in (*STORES, COMPOSITE)
        else option
        for option in options
    ]


def _charged(option: ShardingOption, fused: Mapping[str, Any]) -> ShardingOption:
    params = option.key_value_params or KeyValueParams()
    rows, columns = option.tensor.shape
    element, kernel = option.tensor.element_size(), option.compute_kernel
    factor = fused.get("cache_load_factor") or _DEFAULT_FACTOR
    fifth = math.ceil(rows * factor * element * columns)
    theirs = min((params.max_l1_cache_size or 0) * MEBIBYTE, fifth)  # TorchRec's, for its cache

    def storage(shard: Shard, now: Storage) -> Storage:
        rows, columns = (int(n) for n in shard.size)
        row = columns * element
        cap = params.max_l1_cache_size
        slots = 0
        if rows:
            one, two, three = (np.array([n]) for n in (rows, columns, element))
            slots = int(cache_slots(one, two, three, None if cap is None else np.array([cap]))[0])
        hbm = slots * (row + SLOT_BYTES) + rows * _state(columns, fused)
        ddr = 2 * slots * (row + EVICTED_BYTES)
        ssd = 0
        if kernel == "dram_virtual_table":
            ddr += rows * (row + HEADER_BYTES + MAP_BYTES)
        else:
            ddr += (params.l2_cache_size or 0) * 2**30
            ddr += params.ssd_rocksdb_write_buffer_size or WRITE_BUFFER
            ssd = rows * (row + KEY_BYTES)
        return Storage(hbm=now.hbm - theirs + hbm, ddr=now.ddr + ddr, ssd=ssd)

    return with_storage(option, storage)


def _state(columns: int, fused: Mapping[str, Any]) -> int:
    name = getattr(fused.get("optimizer"), "name", "EXACT_ROWWISE_ADAGRAD")
    return {"ADAM": 4 + 8 * columns, "PARTIAL_ROWWISE_ADAM": 4 + 4 * columns}.get(name, 4)
