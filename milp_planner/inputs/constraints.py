"""Limits on where and how a table may be placed: modes, cuts, grids, ranks, pins."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from milp_planner.errors import Problem
from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.quantities import show
from milp_planner.inputs.spec import Count, OneOrSome, Ratio, Some, Spec, as_tuple

if TYPE_CHECKING:
    from milp_planner.inputs.cluster import Cluster
    from milp_planner.inputs.model import Model
    from milp_planner.inputs.table import Table

Mode = Literal["HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY", "SSD"]
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

RankNumbers = Some[Annotated[int, Field(ge=0)]]


def _grid(value: object) -> object:
    """``tenths`` (…, ``hundredths``) stand for all fractions of that kind between 0 and 1."""
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
    tuple[Ratio, ...], BeforeValidator(_grid), Field(min_length=1), AfterValidator(_rising)
]
COLUMN_STEP = 4
"""TorchRec's tables and their column shards are a multiple of this wide: FBGEMM reads vectors of
four. Its ``construct_split_state`` (``split_table_batched_embeddings_ops_training.py``, 1.8.0)
refuses other widths, and so do its CUDA lookups, dense ones too."""

TENTHS = tuple(Fraction(i, 10) for i in range(1, 10))
"""The default cache-ratio grid, 1/10 … 9/10 (0 is HOST_ONLY and 1 is HBM_ONLY: modes)."""
LARGEST_L1 = Fraction(1, 5)
"""Largest share of a shard's rows that FBGEMM's cache of a key-value store holds in HBM."""
L1_RATIOS = (*(Fraction(1, n) for n in (100, 50, 20, 10)), LARGEST_L1)
"""The default cache-ratio grid of tables in a key-value store."""


def _number_or_list(value: object) -> object:
    """One number stands for a list of it."""
    return (value,) if type(value) is int else as_tuple(value)


_NODES = {"type": "integer", "minimum": 1}
Nodes = Annotated[
    tuple[Count, ...],
    BeforeValidator(_number_or_list),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_NODES, {"type": "array", "items": _NODES, "minItems": 1}]}),
]


class PinSpec(Spec):
    """The option that a table must take; omitted fields stay free."""

    mode: Mode | None = None
    """Mode that the table must take."""
    sharding_type: ShardingType | None = None
    """Sharding type that the table must take."""
    cache_ratio: Ratio | None = None
    """Cache ratio that the table must take, with CACHING, HYBRID or SSD."""
    dist_type: DistType | None = None
    """Routing rule that the table must take; one of its dist_types."""
    column_width: Count | None = None
    """Width of its column shards, in columns."""
    num_nodes: Count | None = None
    """Machines (or runs of ``span`` machines) over which table_row_wise splits its rows."""
    stash: bool | None = None
    """Whether its weights leave HBM between forward and backward."""
    ranks: RankNumbers | None = None
    """Ranks of the shards, in shard order; a rank may be listed more than once."""

    @model_validator(mode="after")
    def _ratio_needs_a_cache(self) -> PinSpec:
        if self.cache_ratio is not None and self.mode in ("HBM_ONLY", "HOST_ONLY"):
            raise problem_at(f"needs CACHING, HYBRID or SSD, found {self.mode}", "cache_ratio")
        return self


class Constraints(Spec):
    """Limits on one table's options; an omitted field sets no limit."""

    modes: OneOrSome[Mode] | None = None
    """Allowed modes."""
    sharding_types: OneOrSome[ShardingType] | None = None
    """Allowed sharding types."""
    cache_ratios: RatioGrid | None = None
    """Cache-ratio grid of this table; by default the workload's. A key-value store uses those up to
    1/5."""
    column_widths: Some[Count] | None = None
    """Allowed widths of a column shard, in columns: multiples of 4; default: all legal."""
    num_nodes: Nodes | None = None
    """Machines (or runs of ``span`` machines) over which table_row_wise may split rows: one number,
    or a list to choose from; default: 1. More than 1 needs a TorchRec with ``num_nodes`` (pull
    requests 4681 to 4683; no release up to 1.9.2)."""
    stash: Literal["allow", "always", "never"] = "allow"
    """Whether its weights may, must or must not leave HBM between forward and backward, if the
    workload has a stash_window_ms."""
    ranks: RankNumbers | None = None
    """The only ranks that may hold a shard of this table."""
    pin: PinSpec | None = None
    """The option that the table must take."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """Numbers of machines over which rows may be split, rising."""
        pinned = None if self.pin is None else self.pin.num_nodes
        return tuple(sorted(set(self.num_nodes or (1,)))) if pinned is None else (pinned,)

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
            ("num_nodes", pin.num_nodes, self.num_nodes),
            ("stash", pin.stash, {"always": (True,), "never": (False,)}.get(self.stash)),
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


def mismatches(model: Model, cluster: Cluster) -> dict[str, Problem]:
    """A problem for each table that names ranks or machines which the cluster does not have."""
    allowed = f"allowed: 0 to {cluster.num_ranks - 1} of cluster {cluster.name}"
    groups = len(cluster.row_groups)
    found: dict[str, Problem] = {}
    for number, table in enumerate(model.tables):
        if (most := table.constraints.nodes[-1]) > groups:
            where = f"tables[{number}].constraints.num_nodes (table {table.name})"
            what = f"found {most}; allowed: 1 to {groups} on cluster {cluster.name}"
            found[table.name] = Problem(what, where, f"model {model.name}")
        for field, rank in _named(table):
            if rank >= cluster.num_ranks:
                where = f"tables[{number}].constraints.{field} (table {table.name})"
                problem = Problem(f"found rank {rank}; {allowed}", where, f"model {model.name}")
                found.setdefault(table.name, problem)
    return found


def ranks_needed(model: Model) -> int:
    """Ranks of the smallest cluster that has every rank named by the model's constraints."""
    named = (rank for table in model.tables for _, rank in _named(table))
    return 1 + max(named, default=0)


def _named(table: Table) -> Iterator[tuple[str, int]]:
    """Every rank that a table's constraints name, with its field."""
    limits = table.constraints
    yield from (("ranks", rank) for rank in limits.ranks or ())
    yield from (("pin.ranks", rank) for rank in (limits.pin.ranks if limits.pin else None) or ())
