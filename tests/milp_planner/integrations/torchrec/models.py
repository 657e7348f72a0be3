"""TorchRec models, topologies, constraints and planners for the tests, by hand and at random."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.fbgemm_qcomm_codec import (
    CommType,
    QCommsConfig,
    get_qcomm_codecs_registry,
)
from torchrec.distributed.planner import EmbeddingShardingPlanner, Topology
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import (
    CustomTopologyData,
    ParameterConstraints,
    Perf,
    Shard,
    ShardingOption,
    Storage,
)
from torchrec.distributed.types import CacheParams
from torchrec.modules.embedding_configs import EmbeddingBagConfig, EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection, EmbeddingCollection

from formulations import Settings
from milp_planner.integrations.torchrec import MilpShardingPlanner
from milp_planner.integrations.torchrec.problem import Problem, compile_problem

QUICK = Settings(time_limit=900.0, work_limit=3.0, workers=1, polish=False)
META = torch.device("meta")
GIB = 2**30


def bag_sharders() -> list[Any]:
    """Sharders of pooled and unpooled collections."""
    return [EmbeddingBagCollectionSharder(), EmbeddingCollectionSharder()]


def bags(
    shapes: Sequence[tuple[int, int]], prefix: str = "t", weighted: bool = False
) -> EmbeddingBagCollection:
    """A pooled collection of tables (rows, dim) on the meta device."""
    return EmbeddingBagCollection(
        device=META,
        is_weighted=weighted,
        tables=[
            EmbeddingBagConfig(
                name=f"{prefix}{i}",
                num_embeddings=rows,
                embedding_dim=dim,
                feature_names=[f"{prefix}f{i}"],
            )
            for i, (rows, dim) in enumerate(shapes)
        ],
    )


def sequences(shapes: Sequence[tuple[int, int]], prefix: str = "s") -> EmbeddingCollection:
    """An unpooled collection; its tables share one dim."""
    return EmbeddingCollection(
        device=META,
        tables=[
            EmbeddingConfig(
                name=f"{prefix}{i}",
                num_embeddings=rows,
                embedding_dim=dim,
                feature_names=[f"{prefix}f{i}"],
            )
            for i, (rows, dim) in enumerate(shapes)
        ],
    )


@dataclass
class Case:
    """One model with all inputs of TorchRec's planner."""

    module: nn.Module
    topology: Topology
    constraints: dict[str, ParameterConstraints] | None = None
    batch_size: int = 512
    reserve: float = 0.15
    sharders: list[Any] = field(default_factory=lambda: bag_sharders())

    @property
    def reservation(self) -> FixedPercentageStorageReservation:
        return FixedPercentageStorageReservation(self.reserve)

    def enumerator(self) -> EmbeddingEnumerator:
        return EmbeddingEnumerator(
            self.topology, batch_size=self.batch_size, constraints=self.constraints
        )

    def reserved(self) -> Topology:
        return self.reservation.reserve(
            self.topology, self.batch_size, self.module, self.sharders, self.constraints
        )

    def problem(self, **more: Any) -> Problem:
        space = self.enumerator().enumerate(self.module, self.sharders)
        return compile_problem(space, self.reserved(), **more)


def planner_for(case: Case, **more: Any) -> MilpShardingPlanner:
    """Our planner on a test case, quiet and quick by default."""
    return MilpShardingPlanner(**_given(case), **{"settings": QUICK, "stats": [], **more})


def planned_for(case: Case, **more: Any) -> MilpShardingPlanner:
    """The same after it planned."""
    planner = planner_for(case, **more)
    planner.plan(case.module, case.sharders)
    return planner


def stock_for(case: Case, **more: Any) -> EmbeddingShardingPlanner:
    """TorchRec's own planner on a test case."""
    return EmbeddingShardingPlanner(**_given(case), stats=[], **more)


def _given(case: Case) -> dict[str, Any]:
    return {
        "topology": case.topology, "batch_size": case.batch_size, "constraints": case.constraints,
        "storage_reservation": case.reservation,
    }  # fmt: skip


class FixedEnumerator:
    """An enumerator that offers handmade options."""

    def __init__(self, options: list[ShardingOption]) -> None:
        self.options = options

    def enumerate(self, module: object, sharders: object) -> list[ShardingOption]:
        return self.options


def topology(
    ranks: int = 4, host: int | None = None, hbm: int = 8 * GIB, ddr: int = 64 * GIB, **more: Any
) -> Topology:
    """A CUDA topology; planning needs no GPU."""
    return Topology(
        world_size=ranks,
        local_world_size=host or ranks,
        compute_device="cuda",
        hbm_cap=hbm,
        ddr_cap=ddr,
        **more,
    )


class Mixed(nn.Module):
    """Several sparse modules beside a dense one."""

    def __init__(self, parts: dict[str, nn.Module]) -> None:
        super().__init__()
        self.sparse = nn.ModuleDict(parts)
        self.dense = nn.Linear(8, 1, device=META)


_POOLED_TYPES = (
    "data_parallel", "table_wise", "column_wise", "row_wise", "table_row_wise",
    "table_column_wise", "grid_shard",
)  # fmt: skip


def random_case(seed: int) -> Case:
    """A small production-like model: sharders, constraints, splits, several modules."""
    draw = random.Random(seed)
    hosts, per_host = draw.choice([(1, 2), (1, 4), (2, 2), (2, 4), (4, 2)])
    parts: dict[str, nn.Module] = {}
    for index in range(draw.randint(1, 3)):
        shapes = [_shape(draw) for _ in range(draw.randint(1, 4))]
        if draw.random() < 0.3:
            dim = shapes[0][1]
            same = [(rows, dim) for rows, _ in shapes]
            parts[f"m{index}"] = sequences(same, prefix=f"m{index}_s")
        else:
            parts[f"m{index}"] = bags(shapes, f"m{index}_t", weighted=draw.random() < 0.3)
    tables = {
        name.split(".")[-2]: parameter
        for name, parameter in nn.ModuleDict(parts).state_dict().items()
    }
    size = sum(p.numel() * 4 for p in tables.values())
    ranks = hosts * per_host
    hbm = int(size / ranks * draw.choice([0.4, 0.8, 1.5, 4.0])) + 40 * 2**20
    uneven = None
    if draw.random() < 0.25:
        amounts = [int(hbm * draw.choice([0.6, 1.0, 1.4])) for _ in range(ranks)]
        uneven = CustomTopologyData({"hbm_cap": amounts}, world_size=ranks)
    ddr = int(size * 0.8) + 40 * 2**20
    return Case(
        module=Mixed(parts),
        topology=topology(ranks, per_host, hbm, ddr, custom_topology_data=uneven),
        sharders=_random_sharders(draw),
        constraints={
            name: _constraint(draw, "_s" not in name) for name in tables if draw.random() < 0.8
        },
        batch_size=draw.choice([64, 512, 2048]),
    )


def _random_sharders(draw: random.Random) -> list[Any]:
    """Sharders with fused parameters and quantised communication, as users set them."""
    fused = draw.choice([None, {"cache_load_factor": 0.35}, {"prefetch_pipeline": True}])
    codecs = None
    if draw.random() < 0.3:
        half = QCommsConfig(forward_precision=CommType.FP16, backward_precision=CommType.BF16)
        codecs = get_qcomm_codecs_registry(half)
    return [
        EmbeddingBagCollectionSharder(fused_params=fused, qcomm_codecs_registry=codecs),
        EmbeddingCollectionSharder(qcomm_codecs_registry=codecs),
    ]


def _shape(draw: random.Random) -> tuple[int, int]:
    rows = int(10 ** draw.uniform(1.0, 6.5))
    return rows, draw.choice([4, 16, 64, 128, 192, 256])


def _constraint(draw: random.Random, pooled: bool) -> ParameterConstraints:
    types: list[str] | None = None
    if draw.random() < 0.4:
        known = _POOLED_TYPES if pooled else _POOLED_TYPES[:4]
        types = draw.sample(known, draw.randint(2, len(known)))
        if not set(types) - {"grid_shard", "data_parallel"}:
            types.append("row_wise")
    elif draw.random() < 0.2:
        types = ["data_parallel"]
    kernels = draw.choice([None, None, ["fused", "dense"], ["fused_uvm_caching", "dense"]])
    factor = draw.choice([None, 0.1, 0.55])
    return ParameterConstraints(
        sharding_types=types,
        compute_kernels=kernels,
        min_partition=draw.choice([None, 32, 64]),
        pooling_factors=[round(draw.uniform(1, 40), 2)],
        cache_params=None if factor is None else CacheParams(load_factor=factor),
    )


def bare_option(
    name: str,
    sizes: Sequence[int],
    sharding_type: str = "table_wise",
    partition_by: str = "device",
    perf: float = 1.0,
    dependency: str | None = None,
) -> ShardingOption:
    """A handmade sharding option with this HBM per shard and equal times."""
    return ShardingOption(
        name=name,
        tensor=torch.empty(len(sizes), 4, device=META),
        module=("ebc", nn.Module()),
        input_lengths=[1.0],
        batch_size=1,
        sharding_type=sharding_type,
        partition_by=partition_by,
        compute_kernel="fused",
        dependency=dependency,
        is_pooled=True,
        shards=[
            Shard(
                size=[1, 4],
                offset=[index, 0],
                storage=Storage(hbm=size, ddr=0),
                perf=Perf(fwd_compute=perf, fwd_comms=0, bwd_compute=0, bwd_comms=0),
            )
            for index, size in enumerate(sizes)
        ],
    )
