"""Where a step takes more memory than TorchRec's estimate: a TorchRec plan's ledger, rank by rank.

TorchRec counts rows, optimizer state and ids. The ledger of :mod:`milp_planner.pricing.entries`
also counts, moment by moment, the buffers for sending, receiving, encoding and reordering.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import nn
from torchrec.distributed.planner.shard_estimators import get_num_poolings
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption, Topology
from torchrec.distributed.types import ModuleSharder

from milp_planner.drawing.units import show_bytes, show_ranks
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.table import ELEMENT_BYTES
from milp_planner.integrations.torchrec.options import fused_of, sharder_of
from milp_planner.pricing.buffers import exchanged_by
from milp_planner.pricing.entries import MOMENTS, RANK_ENTRIES, SHARD_ENTRIES, SHARD_NAMES
from milp_planner.pricing.job import Job, ShardColumns, option_columns
from milp_planner.pricing.options import Choice
from milp_planner.pricing.outside import exchange_bytes
from milp_planner.pricing.profile import load_profile
from milp_planner.pricing.shards import bytes_job, shard_bytes
from milp_planner.pricing.splits import Batch, worst_batch
from milp_planner.pricing.units import FloatArray, IntArray

TOLD_ABOVE = 0.10
"""Ranks are reported if the ledger exceeds TorchRec's estimate by more than this share."""
_MODES = {
    "dense": "HBM_ONLY", "fused": "HBM_ONLY",
    "fused_uvm": "HOST_ONLY", "fused_uvm_caching": "CACHING",
}  # fmt: skip
"""Kernels whose rows the ledger counts; for others TorchRec's bytes are used."""
_DTYPES = {
    torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.int8: "int8", torch.uint8: "int8",
}  # fmt: skip
_OPTIMIZERS = {
    "SGD": "sgd", "Adam": "adam", "Adagrad": "adagrad", "RowWiseAdagrad": "rowwise_adagrad",
    "LAMB": "lamb", "PartialRowWiseAdam": "partial_rowwise_adam",
    "PartialRowWiseLAMB": "partial_rowwise_lamb",
}  # fmt: skip
_UVM_RATIO = Fraction(1, 5)
"""Default share of rows in a cache (TorchRec's UVM_CACHING_RATIO)."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class Fullest:
    """The fullest moment of one rank by the ledger, and TorchRec's estimate."""

    moment: str
    entries: dict[str, int]
    """Bytes of every entry that is alive then; none is 0."""
    estimate: int

    @property
    def bytes(self) -> int:
        """Sum of all entries."""
        return sum(self.entries.values())


def above_estimate(
    options: Sequence[ShardingOption],
    topology: Topology,
    constraints: Mapping[str, ParameterConstraints] | None = None,
    sharders: Sequence[ModuleSharder[nn.Module]] = (),
) -> str | None:
    """A sentence about ranks whose fullest moment is over 10% above TorchRec's estimate.

    None if there are none.
    """
    found = fullest_moments(options, topology, constraints, sharders)
    above = {
        rank: each
        for rank, each in enumerate(found)
        if each.estimate and each.bytes > (1 + TOLD_ABOVE) * each.estimate
    }
    if not above:
        return None
    rank = max(above, key=lambda r: above[r].bytes - above[r].estimate)
    most = above[rank]
    rows = ("weights", "state")
    large = sorted((n for n in most.entries if n not in rows), key=lambda n: -most.entries[n])
    named = ", ".join(f"{n} {show_bytes(most.entries[n])}" for n in large[:_MOST_NAMED])
    return (
        f"HBM on ranks {show_ranks(list(above), len(found))}: over {TOLD_ABOVE:.0%} above "
        f"TorchRec's estimate at a step's fullest moment, most on rank {rank}: "
        f"{show_bytes(most.bytes)} in {most.moment}, estimated {show_bytes(most.estimate)}; "
        f"largest besides rows: {named}"
    )


def fullest_moments(
    options: Sequence[ShardingOption],
    topology: Topology,
    constraints: Mapping[str, ParameterConstraints] | None = None,
    sharders: Sequence[ModuleSharder[nn.Module]] = (),
) -> list[Fullest]:
    """The fullest moment of every rank of a plan, given as options with the ranks of their shards.

    Tables in kernels that the ledger does not know (key-value, virtual, dynamicemb) count as
    TorchRec estimates them, and so do ids that its estimate does not separate from rows.
    """
    ranks = topology.world_size
    model = _model(options, constraints, sharders)
    cluster = _cluster(topology)
    job = bytes_job(model, cluster, load_profile(cluster.profile))
    places, bytes_ = _shards(job, options, sharders)
    everywhere = exchange_bytes(model, ranks)
    kept, estimate = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
    for option in options:
        for shard in option.shards:
            if shard.rank is not None and shard.storage is not None:
                estimate[shard.rank] += shard.storage.hbm
                kept[shard.rank] += 0 if _mode(option) else shard.storage.hbm
    by_rank = np.zeros((ranks, len(SHARD_NAMES)), np.int64)
    np.add.at(by_rank, places, bytes_)
    return [
        _fullest(
            dict(zip(SHARD_NAMES, by_rank[rank].tolist(), strict=True))
            | everywhere
            | {"as_estimated": int(kept[rank])},
            int(estimate[rank]),
        )
        for rank in range(ranks)
    ]


def _fullest(amounts: dict[str, int], estimate: int) -> Fullest:
    moments = {entry.name: entry.moments for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)}
    alive = {
        moment: {n: b for n, b in amounts.items() if b and moment in moments.get(n, MOMENTS)}
        for moment in MOMENTS
    }
    moment = max(alive, key=lambda m: sum(alive[m].values()))
    return Fullest(moment, alive[moment], estimate)


def _mode(option: ShardingOption) -> str | None:
    """The mode of a kernel; None where its bytes are TorchRec's."""
    known = option.tensor.dtype in _DTYPES and type(option.sharding_type) is str
    return _MODES.get(option.compute_kernel) if known else None


def _model(
    options: Sequence[ShardingOption],
    constraints: Mapping[str, ParameterConstraints] | None,
    sharders: Sequence[ModuleSharder[nn.Module]],
) -> Model:
    """The tables of a plan, each with the lookups of its module."""
    batch = options[0].batch_size
    tables = []
    for number, option in enumerate(options):
        poolings = get_num_poolings(constraints, option)
        ids = sum(n * q for n, q in zip(poolings, option.input_lengths, strict=True))
        rows, dim = option.tensor.shape
        features = max(1, len(option.input_lengths))
        use: dict[str, Any] = {"output": "sequence", "sequence_length": max(ids / features, 1e-9)}
        if option.is_pooled:
            each = max(sum(poolings) / features, 1e-9)
            use = {"num_poolings": each, "pooling_factor": ids / (each * features)}
        classes = getattr(option.tensor, "_optimizer_classes", [])
        forward, backward = _wire(option, sharders)
        tables.append(
            {
                "name": f"t{number}", "rows": rows, "dim": dim, "num_features": features,
                "dtype": _DTYPES.get(option.tensor.dtype, "fp32"),
                "output_dtype": _returned(option, sharders),
                "optimizer": _OPTIMIZERS.get(classes[0].__name__, "other") if classes else "none",
                "exchange_dtype": forward, "exchange_dtype_backward": backward, **use,
            }
        )  # fmt: skip
    return Model.from_dict({"name": "m", "workload": {"batch_per_rank": batch}, "tables": tables})


def _returned(option: ShardingOption, sharders: Sequence[ModuleSharder[nn.Module]]) -> str | None:
    """Element type of lookups, if the constraints or the sharder's fused parameters state it."""
    stated = getattr(option, "output_dtype", None) or fused_of(option, sharders).get("output_dtype")
    return _named(str(getattr(stated, "name", "")).lower())


def _wire(
    option: ShardingOption, sharders: Sequence[ModuleSharder[nn.Module]]
) -> tuple[str | None, str | None]:
    """Types on the wire in the module's sharder, forward and backward."""
    sharder = sharder_of(option, sharders)
    registry = {} if sharder is None else sharder.qcomm_codecs_registry or {}
    for codecs in registry.values():  # the same for every collective
        ways = codecs.forward, codecs.backward
        types = (getattr(each, "_comm_precision", None) for each in ways)
        forward, backward = (_named(getattr(each, "value", None)) for each in types)
        return forward, backward
    return None, None


def _named(precision: str | None) -> str | None:
    return precision if precision in ELEMENT_BYTES else None


def _cluster(topology: Topology) -> Cluster:
    """A cluster with as many ranks and machines; memories and links do not matter for bytes."""
    machines = max(1, topology.world_size // topology.local_world_size)
    return Cluster.from_dict({
        "name": "c", "machines": machines,
        "ranks_per_machine": topology.world_size // machines, "hbm": "1TiB", "ddr": "1TiB",
        "interconnect": {"intra_machine": "1GB/s", "inter_machine": "1GB/s"},
    })  # fmt: skip


def _shards(
    job: Job, options: Sequence[ShardingOption], sharders: Sequence[ModuleSharder[nn.Module]]
) -> tuple[IntArray, IntArray]:
    """Rank and ledger of every shard whose kernel the ledger knows.

    int64 arrays [shards] and [shards, entries].
    """
    known = [index for index, option in enumerate(options) if _mode(option)]
    columns = option_columns([_choice(job, options[i], sharders) for i in known], job.ranks, known)
    rows = [
        (at, shard.rank or 0, *shard.size)
        for at, index in enumerate(known)
        for shard in options[index].shards
    ]
    option, rank, height, width = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    worst = np.array(
        [_worst(job, table, group) for table, group in zip(columns.table, columns.group_ranks,
                                                           strict=True)]
    )  # fmt: skip
    even = np.ones(len(option))
    shards = ShardColumns(option, np.ones_like(option), height, width, even, worst[option])
    own = columns.at(option)
    return rank, shard_bytes(job, own, shards, exchanged_by(job, own, shards)).ledger


def _worst(job: Job, table: int, group: int) -> float:
    """Load of a row part over the mean in the worst batch: ids are assumed to fall evenly."""
    ids = float(job.traffic.ids[table])
    batch = Batch(0.0, ids * job.ranks, ids / job.workload.batch_per_rank)
    loads: FloatArray = worst_batch(np.ones(1), int(group), batch)
    return float(loads[0])


def _choice(
    job: Job, option: ShardingOption, sharders: Sequence[ModuleSharder[nn.Module]]
) -> Choice:
    """The choice that has an option's bytes."""
    mode = _mode(option)
    assert mode is not None
    by_machine = option.sharding_type in ("table_row_wise", "grid_shard")
    widths = {shard.offset[1]: shard.size[1] for shard in option.shards}
    ratio = {"HBM_ONLY": Fraction(1), "HOST_ONLY": Fraction(0)}.get(mode)
    if ratio is None:
        factor = option.cache_load_factor
        if factor is None:  # the sharder's, as in TorchRec's estimate
            factor = fused_of(option, sharders).get("cache_load_factor")
        ratio = _UVM_RATIO if factor is None else Fraction(factor).limit_denominator(10_000)
    return Choice(
        sharding=option.sharding_type,
        mode=mode,  # type: ignore[arg-type]
        ratio=ratio,
        width=max(widths.values()),
        columns=len(widths),
        machine_ranks=len(job.site.row_groups[0]) if by_machine else 0,
    )
