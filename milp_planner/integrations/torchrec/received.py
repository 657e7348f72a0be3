"""Where a step takes more than TorchRec's estimate: what every rank receives is not in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torchrec.distributed.planner.shard_estimators import get_num_poolings
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption

from milp_planner.drawing.units import show_bytes, show_ranks

TOLD_ABOVE = 0.10
"""Ranks are named on which the ledger is above TorchRec's estimate by more than this share."""


def received_bytes(
    options: Sequence[ShardingOption], constraints: Mapping[str, ParameterConstraints] | None
) -> int:
    """Bytes of the embeddings that a rank receives for its own batch, wherever tables lie.

    As the ledger's entry ``activations``: Σ over sharded tables of outputs · dim · element, an
    output a bag (pooled) or an id.
    """
    total = 0.0
    for option in options:
        if option.sharding_type == "data_parallel":
            continue
        poolings = get_num_poolings(constraints, option)
        lengths = [1.0] * len(poolings) if option.is_pooled else option.input_lengths
        bags = sum(each * length for each, length in zip(poolings, lengths, strict=True))
        row = option.tensor.shape[1] * option.tensor.element_size()
        total += option.batch_size * bags * row
    return math.ceil(total)


def above_estimate(
    options: Sequence[ShardingOption],
    constraints: Mapping[str, ParameterConstraints] | None,
    ranks: int,
) -> str | None:
    """The ranks on which a step takes over 10% more HBM than TorchRec's estimate of a plan, in a
    sentence; None where there are none, as on a single rank, which receives nothing."""
    received = received_bytes(options, constraints) if ranks > 1 else 0
    held = [0] * ranks
    for option in options:
        for shard in option.shards:
            if shard.rank is not None and shard.storage is not None:
                held[shard.rank] += shard.storage.hbm
    above = [r for r, own in enumerate(held) if own and received > TOLD_ABOVE * own]
    if not above:
        return None
    return (
        f"ranks {show_ranks(above, ranks)} take over {TOLD_ABOVE:.0%} more HBM than TorchRec's "
        f"estimate, which leaves out the {show_bytes(received)} of embeddings that each receives"
    )
