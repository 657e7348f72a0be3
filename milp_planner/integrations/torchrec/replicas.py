"""Time of averaging the replicas of TorchRec's shards, in picoseconds.

Priced as in :mod:`milp_planner.pricing.replicas`, for shards that TorchRec enumerates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchrec.distributed.planner.types import Shard, ShardingOption

from milp_planner.errors import BadInput
from milp_planner.pricing.replicas import STATE_BYTES

ON_DEVICE, ON_HOST = ("fused",), ("fused_uvm",)
"""Kernels whose rows ``DMPCollection`` averages."""
REPLICATED = ("dense", "data_parallel")
"""Kernels that average gradients over all ranks instead."""
PER_SECOND = 1e12


@dataclass(frozen=True)
class Replicas:
    """The other sharding groups.

    Attributes
    ----------
    bandwidth : float
        Reduce-scatter among the replicas of a rank, bytes per second.
    host_link : float
        Between host and device memory of a rank, bytes per second.
    interval : int
        Steps from one averaging to the next.
    """

    bandwidth: float
    host_link: float
    interval: int = 1

    def averaged(self, space: Sequence[ShardingOption]) -> list[ShardingOption]:
        """The options whose rows stay equal on all replicas.

        Raises
        ------
        BadInput
            Naming a table that has none, or whose optimizer keeps state that is not averaged.
        """
        kept = [o for o in space if o.compute_kernel in (*ON_DEVICE, *ON_HOST, *REPLICATED)]
        left = {option.fqn for option in kept}
        lost = [option.name for option in space if option.fqn not in left]
        if lost:
            raise BadInput(
                f"table {lost[0]!r} in 2D: none of its kernels is averaged by DMPCollection; "
                f"allowed: {', '.join((*ON_DEVICE, *ON_HOST, REPLICATED[0]))}"
            )
        for option in kept:
            _state(option, 1, 1)
        return kept

    def sync(self, option: ShardingOption, shard: Shard) -> int:
        """Picoseconds per step of averaging a shard; 0 for replicated tables."""
        if option.compute_kernel in REPLICATED:
            return 0
        rows, columns = shard.size
        moved = rows * columns * option.tensor.element_size() + _state(option, rows, columns)
        on_host = option.compute_kernel in ON_HOST
        rate = min(self.bandwidth, self.host_link) if on_host else self.bandwidth
        return round(2 * moved / rate / self.interval * PER_SECOND)


def _state(option: ShardingOption, rows: int, columns: int) -> int:
    """Bytes of averaged optimizer state: row-wise Adagrad if the table names no optimizer.

    BadInput for an optimizer whose state is not averaged.
    """
    named = getattr(option.tensor, "_optimizer_classes", None)
    name = "RowWiseAdagrad" if not named else named[0].__name__
    word = name.lower()
    if word.endswith("sgd"):
        return 0
    if word == "rowwiseadagrad":
        return STATE_BYTES * rows
    if word == "adagrad":
        return STATE_BYTES * rows * columns
    raise BadInput(
        f"table {option.name!r} in 2D: found {name}, whose state DMPCollection cannot average; "
        "allowed: SGD, Adagrad, RowWiseAdagrad"
    )
