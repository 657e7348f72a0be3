"""One table and one shard of a plan, as people and exports read them."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from milp_planner.inputs import quantities
from milp_planner.inputs.constraints import DistType, Mode, ShardingType
from milp_planner.inputs.spec import Spec, as_tuple

TierRatio = Annotated[
    Fraction,
    BeforeValidator(quantities.parse_ratio),
    Field(ge=0, le=1),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
RanksOfBlock = Annotated[tuple[int, ...], BeforeValidator(as_tuple)]


class PlacedTable(Spec):
    """What a plan decided for one table."""

    name: str
    """The table."""
    option: str
    """Name of the chosen option in the Instance."""
    kind: Literal["torchrec", "dynamicemb"]
    """Which library holds the table."""
    sharding_type: ShardingType
    """How it is cut."""
    mode: Mode
    """Which memory it lives in."""
    kernel: str
    """TorchRec's name of the kernel; ``customized_kernel`` for dynamicemb."""
    cache_ratio: TierRatio
    """Share of the rows in HBM: 1 for HBM_ONLY, 0 for HOST_ONLY."""
    dist_type: DistType | None = None
    """Routing rule of a dynamicemb table."""
    column_shards: int = 1
    """Into how many the columns are cut."""
    column_width: int
    """Columns of a shard (the last one may be narrower)."""
    fusion_group: str | None = None
    """Tables that name the same group share one ratio; None where nothing fuses."""
    fusion_caching: bool | None = None
    """The ``caching`` flag of that group."""
    capacity_per_rank: int | None = None
    """Rows a rank of a dynamicemb table can hold (``max_capacity``)."""
    hbm_for_values: int | None = None
    """Bytes of HBM for values on one rank of a dynamicemb table (``local_hbm_for_values``)."""
    ranks: Annotated[tuple[RanksOfBlock, ...], BeforeValidator(as_tuple)]
    """Ranks of every block, in position order."""


class PlacedShard(NamedTuple):
    """One shard on one rank.

    Attributes
    ----------
    rank : int
    rows : (start, stop) or None
        None where the routing rule scatters rows (dynamicemb, unless ``continuous``).
    columns : (start, stop)
    use : dict of resource name to int
        Bytes on this rank (HBM) or charged to its machine (DDR).
    cost : tuple of int
        Picoseconds a phase.
    """

    rank: int
    rows: tuple[int, int] | None
    columns: tuple[int, int]
    use: dict[str, int]
    cost: tuple[int, ...]
