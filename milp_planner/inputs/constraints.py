"""What a user allows for one table: modes, ratios, sharding types, widths, ranks, or a pin."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.quantities import show
from milp_planner.inputs.spec import Count, Ratio, Spec, as_tuple, one_or_many

Mode = Literal["HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY"]
ShardingType = Literal[
    "data_parallel",
    "table_wise",
    "column_wise",
    "row_wise",
    "table_row_wise",
    "table_column_wise",
    "grid_shard",
]
DistType = Literal["continuous", "roundrobin", "hash_roundrobin", "hash_independent"]

RankNumber = Annotated[int, Field(ge=0)]
RankNumbers = Annotated[tuple[RankNumber, ...], BeforeValidator(as_tuple), Field(min_length=1)]


def _grid(value: object) -> object:
    """``tenths`` (…, ``hundredths``) stand for every proper fraction of that kind."""
    names = {"tenths": 10, "twentieths": 20, "fiftieths": 50, "hundredths": 100}
    if isinstance(value, str) and value in names:
        return tuple(Fraction(i, names[value]) for i in range(1, names[value]))
    if isinstance(value, str):
        raise ValueError(f"found {show(value)}; allowed: {', '.join(names)}, or a list of ratios")
    return as_tuple(value)


def _rising(value: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    if len(set(value)) != len(value):
        raise ValueError("a ratio is listed twice; allowed: every ratio once")
    return tuple(sorted(value))


RatioGrid = Annotated[
    tuple[Ratio, ...],
    BeforeValidator(_grid),
    Field(min_length=1),
    AfterValidator(_rising),
]
COLUMN_STEP = 4
"""Column shards are a multiple of this wide: FBGEMM reads vectors of four."""

TENTHS = tuple(Fraction(i, 10) for i in range(1, 10))
"""The default cache-ratio grid, 1/10 … 9/10 (0 is HOST_ONLY and 1 is HBM_ONLY: modes)."""


class Pin(Spec):
    """One option a table must take; what is left out stays free."""

    mode: Mode | None = None
    """Mode the table must take."""
    sharding_type: ShardingType | None = None
    """Sharding type the table must take."""
    cache_ratio: Ratio | None = None
    """Cache ratio the table must take, with CACHING or HYBRID."""
    dist_type: DistType | None = None
    """Routing rule the table must take, one of its dist_types."""
    column_width: Count | None = None
    """Width of its column shards, in columns."""
    ranks: RankNumbers | None = None
    """Ranks the shards must sit on, in shard order; a rank may be listed more than once."""

    @model_validator(mode="after")
    def _ratio_needs_a_cache(self) -> Pin:
        if self.cache_ratio is not None and self.mode in ("HBM_ONLY", "HOST_ONLY"):
            raise problem_at(f"goes with CACHING or HYBRID, not with {self.mode}", "cache_ratio")
        return self


class Constraints(Spec):
    """Limits of one table's options; a field left out does not limit."""

    modes: Annotated[tuple[Mode, ...], BeforeValidator(one_or_many), Field(min_length=1)] | None = (
        None
    )
    """Allowed modes."""
    sharding_types: (
        Annotated[tuple[ShardingType, ...], BeforeValidator(one_or_many), Field(min_length=1)]
        | None
    ) = None
    """Allowed sharding types."""
    cache_ratios: RatioGrid | None = None
    """Cache-ratio grid of this table; None: the workload's."""
    column_widths: (
        Annotated[tuple[Count, ...], BeforeValidator(as_tuple), Field(min_length=1)] | None
    ) = None
    """Allowed widths of a column shard, in columns: multiples of 4, or dim; None: all legal."""
    ranks: RankNumbers | None = None
    """The only ranks that may hold a shard of this table."""
    pin: Pin | None = None
    """An option the table must take."""

    @model_validator(mode="after")
    def _pin_allowed(self) -> Constraints:
        pin = self.pin
        if pin is None:
            return self
        for name, wanted, allowed in (
            ("mode", pin.mode, self.modes),
            ("sharding_type", pin.sharding_type, self.sharding_types),
            ("cache_ratio", pin.cache_ratio, self.cache_ratios),
            ("column_width", pin.column_width, self.column_widths),
        ):
            if wanted is not None and allowed is not None and wanted not in allowed:
                raise problem_at(
                    f"found {wanted}, which the other constraints exclude; "
                    f"allowed: {', '.join(str(each) for each in allowed)}",
                    "pin",
                    name,
                )
        outside = sorted(set(pin.ranks or ()) - set(self.ranks or pin.ranks or ()))
        if outside:
            raise problem_at(
                f"found rank {outside[0]}, which the list of ranks excludes", "pin", "ranks"
            )
        return self
