"""Prices of TorchRec tables against the real TorchRec 1.8.0 enumerator and estimator."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from milp_planner.inputs import Cluster, Model
from milp_planner.pricing import Options, price
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.options import SHARDING_TYPES

GIB = 2**30
INTRA, INTER = 600 * GIB, 12.5 * GIB
BATCH = 512
TABLES = (
    {"name": "wide", "rows": 1_000_000, "dim": 256, "pooling_factor": 20.0, "optimizer": "adam"},
    {"name": "narrow", "rows": 40_000, "dim": 64, "pooling_factor": 3.5},
    {"name": "tiny", "rows": 37, "dim": 32, "pooling_factor": 0.5, "optimizer": "sgd"},
    {"name": "weighted", "rows": 99_999, "dim": 128, "weighted": True, "num_features": 3,
     "pooling_factor": 7.0, "optimizer": "adagrad"},
    {"name": "seq", "rows": 640_000, "dim": 128, "output": "sequence", "sequence_length": 40.0},
)  # fmt: skip
WANTED = {1: {"data_parallel", "table_wise", "row_wise", "column_wise"}}
WANTED[4] = WANTED[1] | {"table_row_wise", "table_column_wise", "grid_shard"}
KERNELS = {
    "dense": ("HBM_ONLY", None),
    "fused": ("HBM_ONLY", None),
    "fused_uvm": ("HOST_ONLY", None),
    "fused_uvm_caching": ("CACHING", Fraction(3, 10)),
}


def module_of_tables() -> Any:
    """A TorchRec module holding every table of ``TABLES``."""
    import torch
    from torchrec import (
        EmbeddingBagCollection,
        EmbeddingBagConfig,
        EmbeddingCollection,
        EmbeddingConfig,
    )

    def configs(kind: Any, chosen: list[dict[str, Any]]) -> list[Any]:
        return [
            kind(
                name=t["name"], num_embeddings=t["rows"], embedding_dim=t["dim"],
                feature_names=[f"{t['name']}_{i}" for i in range(t.get("num_features", 1))],
            )
            for t in chosen
        ]  # fmt: skip

    meta = torch.device("meta")
    bags = [t for t in TABLES if "output" not in t]
    module = torch.nn.Module()
    for weighted in (False, True):
        chosen = [t for t in bags if bool(t.get("weighted")) == weighted]
        tables = configs(EmbeddingBagConfig, chosen)
        bag = EmbeddingBagCollection(tables=tables, is_weighted=weighted, device=meta)
        setattr(module, f"bags_{weighted}", bag)
    sequences = [t for t in TABLES if "output" in t]
    module.seq = EmbeddingCollection(tables=configs(EmbeddingConfig, sequences), device=meta)
    return module


def set_optimizers(module: Any) -> None:
    """Mark every parameter with its table's optimizer, as TorchRec's planner reads it."""
    import torch
    from torchrec.optim import RowWiseAdagrad

    classes = {
        "adam": torch.optim.Adam, "sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad,
        None: RowWiseAdagrad,
    }  # fmt: skip
    wanted = {t["name"]: t.get("optimizer") for t in TABLES}
    for name, parameter in module.named_parameters():
        parameter._optimizer_classes = [classes[wanted[name.split(".")[-2]]]]


def enumerator(machines: int, width: int) -> Any:
    """TorchRec's enumerator with what ``TABLES`` say as its constraints."""
    from torchrec.distributed.planner import ParameterConstraints, Topology
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.types import CacheParams

    topology = Topology(
        world_size=8 * machines, local_world_size=8, compute_device="cuda",
        hbm_cap=80 * GIB, ddr_cap=100 * GIB,
    )  # fmt: skip
    constraints = {
        t["name"]: ParameterConstraints(
            sharding_types=list(SHARDING_TYPES),
            min_partition=width,
            pooling_factors=[t.get("pooling_factor", t.get("sequence_length"))]
            * t.get("num_features", 1),
            is_weighted=bool(t.get("weighted")),
            cache_params=CacheParams(load_factor=0.3),
        )
        for t in TABLES
    }
    return EmbeddingEnumerator(topology, batch_size=BATCH, constraints=constraints)


def theirs(machines: int, width: int) -> dict[tuple[str, str, str, int], list[Any]]:
    """Shards by (table, sharding type, kernel, count) as TorchRec enumerates and prices them."""
    pytest.importorskip("torch")
    pytest.importorskip("torchrec")
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

    class WithGrid(EmbeddingBagCollectionSharder):  # type: ignore[misc]
        def sharding_types(self, compute_device_type: str) -> list[str]:
            return [*super().sharding_types(compute_device_type), "grid_shard"]

    module = module_of_tables()
    set_optimizers(module)
    found = {}
    sharders = [WithGrid(), EmbeddingCollectionSharder()]
    for option in enumerator(machines, width).enumerate(module, sharders):
        if option.compute_kernel in KERNELS:
            count = len({shard.offset[1] for shard in option.shards})
            key = (option.name, option.sharding_type, option.compute_kernel, count)
            found[key] = option.shards
    return found


def ours(machines: int, width: int) -> Options:
    """The same tables priced here, with TorchRec's bandwidths."""
    tables = [{"constraints": {"column_widths": [min(width, t["dim"])]}, **t} for t in TABLES]
    model = Model.from_dict(
        {
            "name": "parity",
            "workload": {
                "batch_per_rank": BATCH,
                "cache_ratios": ["0.3"],
                "storage_model": "torcheasyrec",
            },
            "tables": tables,
        }
    )
    cluster = Cluster.from_dict(
        {
            "name": "c", "machines": machines, "ranks_per_machine": 8, "hbm": "80GiB",
            "ddr": "800GiB", "profile": "torchrec-default",
            "interconnect": {"intra_machine": "600GiB/s", "inter_machine": "12.5GiB/s"},
        }
    )  # fmt: skip
    nodes = min(machines, 2)
    all_reduce = INTER * 8 * nodes / (2 * nodes - 1) / (2 if machines > 2 else 1)
    world = INTRA if machines == 1 else INTER
    across = float("inf") if machines == 1 else INTER
    links = Links(world, world, INTRA, INTRA, across, all_reduce, machines, 8 * machines)
    return price(model, cluster, links=links)


def expanded(options: Options, index: int, field: str, count: int) -> np.ndarray:
    """One value per shard, runs unrolled; a shared entry stands for ``count`` shards."""
    entries = options.entries
    lo, hi = int(entries.first[index]), int(entries.first[index + 1])
    values = getattr(entries, field)[lo:hi]
    if hi - lo == 1:
        return np.repeat(values, count, axis=0)
    return np.repeat(values, entries.repeat[lo:hi], axis=0)


@pytest.mark.parametrize(("machines", "width"), [(1, 32), (1, 64), (4, 32), (4, 128)])
def test_prices_equal_torchrecs_own(machines: int, width: int) -> None:
    """HBM, DDR and every phase of every shard of every option equal TorchRec's estimate."""
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    reference, options = theirs(machines, width), ours(machines, width)
    compared, seen = 0, set()
    for table, spec in enumerate(options.model.tables):
        for index in options.of(table):
            choice = options.choices[index]
            for kernel, (mode, _) in KERNELS.items():
                key = (spec.name, choice.sharding, kernel, choice.columns)
                if choice.mode != mode or key not in reference:
                    continue
                _compare(options, index, reference[key], f"{key}")
                compared, seen = compared + 1, seen | {choice.sharding}
    assert compared >= 40
    assert seen >= WANTED[machines]


def _compare(options: Options, index: int, shards: list[Any], what: str) -> None:
    count = len(shards)
    hbm = expanded(options, index, "hbm", count) + expanded(options, index, "buffer", count)
    ddr = expanded(options, index, "ddr", count)
    cost = expanded(options, index, "cost", count)
    if options.choices[index].sharding == "grid_shard":
        hbm, ddr, cost = (np.resize(a, (count, *a.shape[1:])) for a in (hbm, ddr, cost))
    np.testing.assert_allclose(hbm, [s.storage.hbm for s in shards], atol=2, err_msg=what)
    np.testing.assert_allclose(ddr, [s.storage.ddr for s in shards], atol=2, err_msg=what)
    perf = [
        [s.perf.fwd_compute, s.perf.fwd_comms, s.perf.bwd_compute, s.perf.bwd_comms,
         s.perf.prefetch_compute]
        for s in shards
    ]  # fmt: skip
    np.testing.assert_allclose(cost / 1e9, perf, rtol=1e-6, atol=1e-8, err_msg=what)
