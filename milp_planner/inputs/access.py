"""What is known of how a table's rows are accessed: the input of ``pricing/access.py``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from milp_planner.inputs.spec import Count, Spec, as_tuple

Share = Annotated[float, Field(ge=0, le=1)]
_EPSILON = 1e-6


class MeasuredSkew(Spec):
    """The load of the busiest rank as seen in a real run of the table, row-wise."""

    max_over_mean: Annotated[float, Field(ge=1)]
    """Lookups of the busiest rank divided by the mean over ranks."""
    ranks: Annotated[int, Field(ge=2)]
    """Number of ranks of that run."""


class _Access(Spec):
    unique_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Measured share of distinct ids among the ids of one rank's batch; None: derived."""
    measured_skew: MeasuredSkew | None = None
    """Measured row-wise load of the busiest rank; None: derived from the statistics."""


class Unknown(_Access):
    """Nothing is known: every row is taken to be accessed equally often."""

    kind: Literal["unknown"] = "unknown"
    """The word unknown."""


class Zipf(_Access):
    """The k-th most popular row is accessed in proportion to k to the power −alpha."""

    kind: Literal["zipf"]
    """The word zipf."""
    alpha: Annotated[float, Field(ge=0, le=10)]
    """Exponent; 0 is uniform."""
    hot_ids: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(as_tuple)] = ()
    """Ids of the most popular rows, most popular first; empty: hot rows are anonymous."""


class Histogram(_Access):
    """Rows in classes of equal popularity."""

    kind: Literal["histogram"]
    """The word histogram."""
    bins: Annotated[
        tuple[Annotated[tuple[Share, Share], BeforeValidator(as_tuple)], ...],
        BeforeValidator(as_tuple),
        Field(min_length=1),
    ]
    """Pairs (share of the rows, share of the lookups), in any order; each column sums to 1."""

    @model_validator(mode="after")
    def _sums(self) -> Histogram:
        for column, what in enumerate(("rows", "lookups")):
            total = sum(pair[column] for pair in self.bins)
            if abs(total - 1) > _EPSILON:
                raise ValueError(f"the shares of {what} sum to {total:.6g}; allowed: 1")
        if any(rows == 0 and lookups > 0 for rows, lookups in self.bins):
            raise ValueError("a bin has lookups but no rows; allowed: a share of rows above 0")
        return self


class HotId(Spec):
    """One popular row."""

    share: Annotated[float, Field(gt=0, le=1)]
    """Its share of the table's lookups."""
    id: Annotated[int, Field(ge=0)] | None = None
    """The id; None: known to exist but anonymous."""


class TopIds(_Access):
    """The most popular rows one by one; the rest of the lookups spread evenly."""

    kind: Literal["top_ids"]
    """The word top_ids."""
    ids: Annotated[tuple[HotId, ...], BeforeValidator(as_tuple), Field(min_length=1)]
    """Popular rows with their shares of the lookups, which sum to at most 1."""

    @model_validator(mode="after")
    def _consistent(self) -> TopIds:
        total = sum(hot.share for hot in self.ids)
        if total > 1 + _EPSILON:
            raise ValueError(f"the shares of the hot ids sum to {total:.6g}; allowed: at most 1")
        known = [hot.id for hot in self.ids if hot.id is not None]
        if len(known) != len(set(known)):
            raise ValueError("a hot id is listed twice; allowed: every id once")
        return self


class MissRate(_Access):
    """A measured miss-rate curve of a cache in HBM."""

    kind: Literal["miss_rate"]
    """The word miss_rate."""
    points: Annotated[
        tuple[Annotated[tuple[Share, Share], BeforeValidator(as_tuple)], ...],
        BeforeValidator(as_tuple),
        Field(min_length=1),
    ]
    """Pairs (cache ratio, share of lookups that miss), by rising cache ratio."""
    working_rows: Count | None = None
    """Distinct rows the curve was measured on; None: all rows of the table."""

    @model_validator(mode="after")
    def _falling(self) -> MissRate:
        for (x, miss), (next_x, next_miss) in zip(self.points, self.points[1:], strict=False):
            if next_x <= x or next_miss > miss:
                raise ValueError(
                    f"point ({next_x:g}, {next_miss:g}) follows ({x:g}, {miss:g}); "
                    "allowed: rising cache ratios with falling miss rates"
                )
        return self


class Sample(_Access):
    """Keys of real lookups; read with the model into a histogram."""

    kind: Literal["sample"]
    """The word sample."""
    keys: Annotated[str, Field(min_length=1)]
    """File of keys as they were looked up, its path relative to the model file."""


def name_as_kind(value: object) -> object:
    """The bare word ``unknown`` stands for ``{kind: unknown}``."""
    return {"kind": value} if isinstance(value, str) else value


Access = Annotated[
    Annotated[Unknown | Zipf | Histogram | TopIds | MissRate | Sample, Field(discriminator="kind")],
    BeforeValidator(name_as_kind),
]
