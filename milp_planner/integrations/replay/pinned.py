"""Pins of tables through TorchRec's planner: types and kernels in, ranks out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.table import PinSpec, ShardingType, Table
from milp_planner.integrations.replay import Pins
from milp_planner.integrations.replay.estimate import LOAD_FACTOR, Asked
from milp_planner.pricing.options import BY_COLUMN, MODE_OF_KERNEL
from milp_planner.pricing.runtimes.registry import kernel_of


def asked_of(tables: Sequence[Table], pins: Pins, *, pooled: bool | None = None) -> list[Asked]:
    """The tables as the planner sees them, in the model's order, one id a feature.

    ``pooled`` overrides the tables' own output, for a trainer whose model has its own. FallsShort
    for a table whose type or kernel is left to the planner.
    """
    return [_asked(table, pins[table.name], pooled) for table in tables]


def _asked(table: Table, pin: PinSpec, pooled: bool | None) -> Asked:
    kind = pin.sharding_type
    mode = "HBM_ONLY" if kind == "data_parallel" else pin.mode
    if kind is None or mode is None:
        raise FallsShort(
            f"table {table.name!r} is left to the trainer's planner, whose search is not replayed; "
            "give its sharding type and placement"
        )
    return Asked(
        name=table.name,
        rows=table.rows,
        dim=table.dim,
        element_bytes=table.element_bytes,
        optimizer=table.optimizer,
        sharding_type=kind,
        kernel=kernel_of("torchrec", kind, mode),
        pooled=table.output == "pooled" if pooled is None else pooled,
        weighted=table.weighted,
    )


_WHOLE: dict[str, ShardingType] = {
    "column_wise": "table_wise", "table_column_wise": "table_wise", "grid_shard": "table_row_wise",
}  # fmt: skip
"""What a type is with a single shard of columns."""


def pins_of(tables: Sequence[Asked], ranks: Mapping[str, tuple[int, ...]]) -> dict[str, PinSpec]:
    """What runs; one column shard is a whole table."""
    return {table.name: _pin(table, ranks[table.name]) for table in tables}


def _pin(table: Asked, ranks: tuple[int, ...]) -> PinSpec:
    mode, kind, narrow = MODE_OF_KERNEL[table.kernel], table.sharding_type, False
    if kind in BY_COLUMN:
        narrow = table.width < table.dim
        kind = kind if narrow else _WHOLE[kind]
    return PinSpec.model_construct(  # of valid values, in the search's innermost loop
        mode=mode,
        sharding_type=kind,
        cache_ratio=Fraction(str(LOAD_FACTOR)) if mode == "CACHING" else None,
        column_width=table.width if narrow else None,
        ranks=ranks,
    )


def machines_of(cluster: Cluster) -> tuple[int, int]:
    """Ranks, and ranks of a machine; FallsShort for what TorchRec's Topology cannot describe."""
    sizes = {len(ranks) for ranks in cluster.machine_ranks}
    if len(sizes) > 1:
        raise FallsShort("TorchRec's Topology has the same number of ranks on every machine")
    if cluster.replicas > 1:
        raise FallsShort("the trainer's planner knows no sharding groups")
    return cluster.num_ranks, sizes.pop()


def dense_bytes(model: Model, cluster: Cluster) -> int:
    """Bytes of the dense parameters, as far as the inputs state them."""
    outside = model.outside_embeddings
    stated = 0 if outside is None else outside.parameter_bytes
    return stated or cluster.reservations.dense_parameter_bytes
