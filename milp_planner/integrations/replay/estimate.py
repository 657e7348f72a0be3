"""Time and bytes of a shard as TorchRec's default planner estimates them, digit for digit.

Its partitioner breaks ties by comparing sums of these floats, so every operation is in TorchRec's
order; :mod:`milp_planner.pricing` has the same formulas, vectorised and rounded to picoseconds.

References
----------
TorchRec 1.9.2, ``distributed/planner``: ``estimator/estimator.py`` (the evaluators),
``shard_estimators.py`` (``calculate_shard_storages``), ``constants.py``; and
``distributed/sharding_plan.py`` (``calculate_shard_sizes_and_offsets``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple, cast

import numpy as np

from milp_planner.errors import FallsShort
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import Mode, PinSpec, ShardingType
from milp_planner.inputs.table import Table
from milp_planner.integrations.replay import Pins
from milp_planner.pricing.options import (
    BY_COLUMN,
    BY_MACHINE,
    MODE_OF_KERNEL,
    TIERED,
    WHOLE_ROWS,
)
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.runtimes.registry import kernel_of
from milp_planner.pricing.runtimes.torcheasyrec import (
    DIVISOR,
    fitted,
    planner_value_bytes,
    torcheasyrec_tiers,
)

GIB = 2**30
LOAD_FACTOR = Fraction(1, 5)
"""Cache load factor of a table that states none (``UVM_CACHING_RATIO``)."""
NARROWEST = 128
"""Columns of a column shard at least (``MIN_CW_DIM``)."""
_INTRA, _INTER = 600 * GIB / 1000, 12.5 * GIB / 1000
"""Bytes per millisecond within a machine and between machines (``INTRA_NODE_BANDWIDTH``)."""


class Perf(NamedTuple):
    """Milliseconds; TorchRec adds each field up by itself."""

    fwd_compute: float
    bwd_compute: float
    fwd_comms: float
    bwd_comms: float

    @property
    def total(self) -> float:
        """What ranks are compared by (nothing is prefetched by default)."""
        return self.fwd_compute + self.bwd_compute + self.fwd_comms + self.bwd_comms

    def plus(self, other: Perf) -> Perf:
        """Field by field."""
        return Perf(*(a + b for a, b in zip(self, other, strict=True)))


class Bytes(NamedTuple):
    """Of HBM and of host memory, in the order in which TorchRec compares them."""

    hbm: int
    ddr: int

    def fits(self, room: Bytes) -> bool:
        """Whether there is room in both."""
        return self.hbm <= room.hbm and self.ddr <= room.ddr


class Shard(NamedTuple):
    """One shard of a table."""

    storage: Bytes
    perf: Perf


@dataclass(frozen=True)
class Job:
    """What the planner is told about machines and batch."""

    world: int
    local: int
    """Ranks, and ranks of a machine."""
    batch: int
    """Samples of a rank."""
    wire: tuple[float, float] | None = None
    """Bytes of an element in the forward and backward exchange; None: as in the table."""

    def bandwidth(self, world: int, local: int) -> float:
        """Bytes per millisecond of a collective over ``world`` ranks."""
        return _INTRA if world <= local else _INTER


@dataclass(frozen=True)
class Asked:
    """One table with the type and kernel that are asked of the planner."""

    name: str
    rows: int
    dim: int
    element_bytes: int
    optimizer: str
    sharding_type: ShardingType
    kernel: str
    """dense, fused, fused_uvm or fused_uvm_caching; of a dynamicemb table HYBRID or CACHING."""
    pooled: bool = False
    weighted: bool = False
    load_factor: Fraction = LOAD_FACTOR
    bucket: int = 0
    """Slots of a bucket of a dynamicemb table."""

    @property
    def width(self) -> int:
        """Columns of a column shard."""
        return least_width(self.dim)


def least_width(dim: int) -> int:
    """Columns of a column shard: the least divisor and multiple of 4 from :data:`NARROWEST`."""
    legal = (width for width in range(NARROWEST, dim) if dim % width == 0 and width % 4 == 0)
    return next(legal, dim)


@lru_cache(maxsize=10_000)
def shards_of(asked: Asked, job: Job) -> tuple[Shard, ...]:
    """Every shard of a table, in TorchRec's order."""
    sizes = _sizes(asked, job)
    perfs = {size: _perf(asked, job, *size) for size in set(sizes)}
    bytes_ = {size: _storage(asked, job, *size) for size in set(sizes)}
    return tuple(Shard(bytes_[size], perfs[size]) for size in sizes)


def _sizes(asked: Asked, job: Job) -> list[tuple[int, int]]:
    kind, columns = asked.sharding_type, asked.dim // asked.width
    if kind == "data_parallel":
        return [(asked.rows, asked.dim)] * job.world
    if kind == "row_wise":
        return [(rows, asked.dim) for rows in _split(asked.rows, job.world)]
    if kind == "table_row_wise":
        return [(rows, asked.dim) for rows in _split(asked.rows, job.local)]
    if kind == "grid_shard":
        return [(rows, asked.width) for rows in _split(asked.rows, job.local)] * columns
    if kind in ("column_wise", "table_column_wise"):
        return [(asked.rows, asked.width)] * columns
    return [(asked.rows, asked.dim)]


def _split(rows: int, parts: int) -> Sequence[int]:
    """Blocks of ceil(rows / parts); the last ones may be shorter, or empty."""
    block = -(-rows // parts)
    return [max(0, min(block, rows - block * part)) for part in range(parts)]


@cache
def _constants() -> Profile:
    return load_profile("torchrec-default")


def _bandwidth(asked: Asked) -> float:
    """Bytes per millisecond at which a kernel reads rows (``kernel_bw_lookup``)."""
    profile = _constants()
    hbm, link = profile.hbm / 1000, profile.host_link / 1000
    share = float(asked.load_factor)
    if asked.kernel in TIERED:
        caching = np.array([asked.kernel == "CACHING"])
        hits = float(fitted(np.array([share]), caching)[0])
        return (hits * hbm + (1 - hits) * link) / DIVISOR
    return {
        "dense": profile.kernel.dense_share * hbm,
        "fused": 1 * hbm,
        "fused_uvm": link / 10,
        "fused_uvm_caching": (share * hbm + (1 - share) * link) / 10,
    }[asked.kernel]


def _perf(asked: Asked, job: Job, rows: int, dim: int) -> Perf:
    kernel, device = _constants().kernel, _bandwidth(asked)
    ids = _ids(asked, job)
    least = dim if _by_rows(asked) else max(dim, kernel.least_columns)
    lookup = ids * least * asked.element_bytes
    output, back = (_output(asked, job, dim, each) for each in _wire(asked, job))
    read = math.ceil(ids * 8) * (2 if asked.weighted else 1)
    penalty = 1.0 if _by_rows(asked) else _penalty(dim)
    forward = (1.0 * read + 1.0 * lookup + 1.0 * output + 0.0 * rows) * penalty / device
    weights = forward * kernel.weighted_multiple if asked.weighted else 0.0
    comms = _comms(asked, job, (rows, dim), (output, back), device)
    return Perf(forward, forward * kernel.backward_multiple + weights, *comms)


def _by_rows(asked: Asked) -> bool:
    return asked.sharding_type not in WHOLE_ROWS


def _penalty(dim: int) -> float:
    narrow = _constants().kernel.narrow_penalties
    return next((factor for limit, factor in narrow if dim < limit), 1.0)


def _parts(asked: Asked, job: Job) -> int:
    """Ranks over which the ids of a table are spread."""
    if asked.sharding_type == "row_wise":
        return job.world
    return job.local if asked.sharding_type in BY_MACHINE else 1


def _ids(asked: Asked, job: Job) -> float:
    if asked.sharding_type == "data_parallel":
        return job.batch
    return job.batch / _parts(asked, job) * job.world


def _output(asked: Asked, job: Job, dim: int, element: float) -> float:
    """Bytes that a shard returns; those of a sequence are spread like its ids."""
    if asked.sharding_type == "data_parallel":
        return job.batch * dim * asked.element_bytes
    rows = job.batch if asked.pooled else job.batch / _parts(asked, job)
    return rows * job.world * dim * element


def _wire(asked: Asked, job: Job) -> tuple[float, float]:
    """Bytes of an element in the shard's collective; a reduce-scatter of sequences is not coded."""
    coded = asked.pooled or asked.sharding_type not in BY_MACHINE
    own = float(asked.element_bytes)
    return job.wire if job.wire is not None and coded else (own, own)


def _comms(
    asked: Asked, job: Job, shape: tuple[int, int], sent: tuple[float, float], device: float
) -> tuple[float, float]:
    """Milliseconds of the forward and backward collectives of a shard of that shape.

    ``sent`` are the bytes of both; gathered gradients are copied once more.
    """
    if asked.sharding_type == "data_parallel":
        return 0.0, _all_reduce(shape[0] * shape[1] * asked.element_bytes, job, device)
    there = back = 0.0
    bandwidth = job.bandwidth(job.world, job.local)
    if asked.sharding_type in BY_MACHINE:
        bandwidth = job.bandwidth(job.local, job.local)
        there, back = _between_hosts(asked, job, shape[1])
    back = back + sent[1] / bandwidth
    if _by_rows(asked):
        back += sent[1] * _constants().kernel.batched_copy_multiple / device
    return sent[0] / bandwidth + there, back


def _all_reduce(size: int, job: Job, device: float) -> float:
    nodes = min(job.world / job.local, 2)
    reduced = size * (2 * nodes - 1) / nodes / (_INTER * job.local)
    if job.world > 2 * job.local:
        reduced *= 2
    return reduced + size * _constants().kernel.dense_update_multiple / device


def _between_hosts(asked: Asked, job: Job, dim: int) -> tuple[float, float]:
    hosts = max(1, job.world // job.local)
    if hosts == 1:
        return 0.0, 0.0
    sent = job.batch * hosts * dim
    there, back = job.wire or (asked.element_bytes, asked.element_bytes)
    return sent * there / job.bandwidth(hosts, 1), sent * back / job.bandwidth(hosts, 1)


def _storage(asked: Asked, job: Job, rows: int, dim: int) -> Bytes:
    if asked.kernel in TIERED:
        tier = tiers(asked, rows)
        return Bytes(tier.hbm + _buffers(asked, job, rows, dim), tier.ddr)
    whole = asked.rows * asked.dim * asked.element_bytes
    hosted = asked.kernel in ("fused_uvm", "fused_uvm_caching")
    cached = asked.kernel == "fused_uvm_caching"
    share = float(asked.load_factor)
    hbm = round(whole * share) if cached else 0 if hosted else whole
    index = math.ceil(rows * (4 + share * 16)) if cached else 0
    held = index + _with_state(asked, hbm, rows, dim)
    ddr = _with_state(asked, whole, rows, dim) if hosted else 0
    return Bytes(held + _buffers(asked, job, rows, dim), ddr)


def tiers(asked: Asked, rows: int) -> Bytes:
    """Bytes of ``rows`` of a dynamicemb table as TorchEasyRec counts them."""
    row = planner_value_bytes(asked.dim, asked.element_bytes, asked.optimizer)
    ratio = asked.load_factor
    numbers = rows, row, asked.bucket, ratio.numerator, ratio.denominator
    count, value, bucket, over, under = (np.array([n], dtype=np.int64) for n in numbers)
    caching = np.array([asked.kernel == "CACHING"])
    found = torcheasyrec_tiers(count, value, bucket, (over, under), caching)
    return Bytes(int(found.hbm[0]), int(found.ddr[0]))


def _with_state(asked: Asked, whole: int, rows: int, dim: int) -> int:
    """Bytes of a shard's part of a table's rows, with the optimizer's state."""
    state = {"none": 0.0, "sgd": 0, "adam": 2, "rowwise_adagrad": 1 / asked.dim}
    if asked.sharding_type != "data_parallel":
        whole = math.ceil(whole * (rows * dim) / (asked.rows * asked.dim))
    return whole + math.ceil(whole * state.get(asked.optimizer, 1))


def _buffers(asked: Asked, job: Job, rows: int, dim: int) -> int:
    """Bytes of ids received and embeddings returned."""
    batch, world = job.batch, job.world
    if asked.sharding_type == "data_parallel":
        return batch * 8 + batch * asked.dim * asked.element_bytes
    if _by_rows(asked) and rows * dim == 0:
        return 0
    ids = batch / _parts(asked, job)
    outputs = batch if asked.pooled else ids
    return math.ceil(ids * world * 8) + math.ceil(outputs * world * dim * asked.element_bytes)


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
    kind, narrow = table.sharding_type, False
    if table.kernel in TIERED:
        return _dynamic_pin(table, ranks)
    mode = MODE_OF_KERNEL[table.kernel]
    if kind in BY_COLUMN:
        narrow = table.width < table.dim
        kind = kind if narrow else _WHOLE[kind]
    return PinSpec.model_construct(  # of valid values, in the search's innermost loop
        mode=mode,
        sharding_type=kind,
        cache_ratio=table.load_factor if mode == "CACHING" else None,
        column_width=table.width if narrow else None,
        ranks=ranks,
    )


def _dynamic_pin(table: Asked, ranks: tuple[int, ...]) -> PinSpec:
    ratio, whole = table.load_factor, table.load_factor == 1
    return PinSpec.model_construct(
        mode="HBM_ONLY" if whole else cast(Mode, table.kernel), sharding_type="row_wise",
        cache_ratio=None if whole else ratio, dist_type="roundrobin", ranks=ranks,
    )  # fmt: skip


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
