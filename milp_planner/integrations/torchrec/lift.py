"""Lift two limits of TorchRec's search space: one column width and one load factor per table.

The extra options are copies of enumerated ones with other shards or cache parameters, estimated
by the same enumerator, so its estimators and constraints count for them too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchrec.distributed.planner.types import (
    Enumerator,
    ParameterConstraints,
    Shard,
    ShardingOption,
    Topology,
)
from torchrec.distributed.sharding_plan import calculate_shard_sizes_and_offsets
from torchrec.distributed.types import CacheParams

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.problem import identity
from milp_planner.pricing.options import BY_COLUMN

_CACHING = ("fused_uvm_caching", "quant_uvm_caching")
SMALLEST_WIDTH = 32
"""Narrowest column shard tried by default; TorchRec prices shards below 64 columns 1.75 times as
high."""


@dataclass(frozen=True)
class Lift:
    """Which extra options to try for every table."""

    column_widths: str | Sequence[int] = ()
    """Columns of a column shard. ``"all"``: every divisor of a table's dim that is a multiple of 4
    and at least :data:`SMALLEST_WIDTH`. Widths that do not divide a table's dim are skipped for
    that table. Empty: TorchRec's single width."""
    load_factors: Sequence[float] = ()
    """Cache load factors, each strictly between 0 and 1, tried for caching kernels besides the one
    TorchRec would use. Empty: only that one."""
    cache_bytes: Sequence[int] = ()
    """The same in bytes of a table's weights in its caches over all ranks, for users who cap a
    cache in bytes; skipped for tables that are no larger."""

    def __post_init__(self) -> None:
        widths, factors = self.column_widths, self.load_factors
        if isinstance(widths, str):
            if widths != "all":
                raise BadInput(f"column_widths: found {widths!r}; allowed: 'all' or a list")
        elif any(width < 4 or width % 4 for width in widths):
            raise BadInput(f"column_widths: found {list(widths)}; allowed: multiples of 4")
        if any(not 0 < factor < 1 for factor in factors):
            raise BadInput(
                f"load_factors: found {list(factors)}; allowed: strictly between 0 and 1"
            )

        if any(cap < 1 for cap in self.cache_bytes):
            raise BadInput(f"cache_bytes: found {list(self.cache_bytes)}; allowed: from 1")

    def factors(self, table_bytes: int) -> list[float]:
        """Load factors for a table of ``table_bytes`` bytes."""
        capped = [cap / table_bytes for cap in self.cache_bytes if cap < table_bytes]
        return [*self.load_factors, *capped]

    def widths(self, dim: int, least: int = 0) -> list[int]:
        """Widths of at least ``least`` that split ``dim`` columns evenly, narrowest first."""
        if isinstance(self.column_widths, str):
            tried: Sequence[int] = range(SMALLEST_WIDTH, dim, 4)
        else:
            tried = sorted(set(self.column_widths))
        return [width for width in tried if least <= width < dim and dim % width == 0]


def lift(
    search_space: Sequence[ShardingOption],
    limits: Lift,
    topology: Topology,
    enumerator: Enumerator,
    constraints: Mapping[str, ParameterConstraints] | None = None,
) -> list[ShardingOption]:
    """The search space, followed by options with further column widths and cache load factors.

    The enumerator is the one that made the search space; it prices the extra options in one call.
    ``min_partition`` of a constraint is respected as the narrowest width of its table.
    """
    known = {identity(option) for option in search_space}
    extra: list[ShardingOption] = []
    for option in search_space:
        limit = (constraints or {}).get(option.name)
        least = limit.min_partition or 0 if limit else 0
        for shaped in _shapes(option, limits, topology, least):
            for variant in _cached(shaped, limits):
                if identity(variant) not in known:
                    known.add(identity(variant))
                    extra.append(variant)
    if extra:
        enumerator.populate_estimates(extra)
    return [*search_space, *extra]


def _shapes(
    option: ShardingOption, limits: Lift, topology: Topology, least: int
) -> Iterator[ShardingOption]:
    """The option itself and its other column widths."""
    yield option
    if option.sharding_type not in BY_COLUMN:
        return
    for width in limits.widths(int(option.tensor.shape[1]), least):
        sizes, offsets = calculate_shard_sizes_and_offsets(
            tensor=option.tensor,
            world_size=topology.world_size,
            local_world_size=topology.intra_group_size,
            sharding_type=option.sharding_type,
            col_wise_shard_dim=width,
        )
        shaped = copy.copy(option)
        shaped.shards = [
            Shard(size=list(size), offset=list(offset))
            for size, offset in zip(sizes, offsets, strict=True)
        ]
        yield shaped


def _cached(option: ShardingOption, limits: Lift) -> Iterator[ShardingOption]:
    """The option itself and, if it caches, its other load factors."""
    yield option
    if option.compute_kernel not in _CACHING:
        return
    for factor in limits.factors(option.tensor.numel() * option.tensor.element_size()):
        variant = copy.deepcopy(option)
        variant.cache_params = variant.cache_params or CacheParams()
        variant.cache_params.load_factor = factor
        yield variant
