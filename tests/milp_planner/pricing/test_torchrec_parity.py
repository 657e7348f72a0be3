"""Prices of TorchRec tables against the real TorchRec 1.8.0 enumerator and estimator."""

import os
from typing import Any

import numpy as np
import pytest

from milp_planner.inputs import Cluster, Model
from milp_planner.pricing import Options, price
from milp_planner.pricing.exchange import Links
from milp_planner.pricing.options import SHARDING_TYPES
from tests.milp_planner.pricing.build import cluster, model

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
    "dense": "HBM_ONLY", "fused": "HBM_ONLY", "fused_uvm": "HOST_ONLY",
    "fused_uvm_caching": "CACHING",
}  # fmt: skip


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


def enumerator(topology: Any, width: int) -> Any:
    """TorchRec's enumerator with constraints from ``TABLES``."""
    from torchrec.distributed.planner import ParameterConstraints
    from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
    from torchrec.distributed.types import CacheParams

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


def plain_topology(machines: int) -> Any:
    """Machines of eight ranks at TorchRec's own bandwidths."""
    pytest.importorskip("torch")
    pytest.importorskip("torchrec")
    from torchrec.distributed.planner import Topology

    return Topology(
        world_size=8 * machines, local_world_size=8, compute_device="cuda",
        hbm_cap=80 * GIB, ddr_cap=100 * GIB,
    )  # fmt: skip


def theirs(topology: Any, width: int) -> dict[tuple[str, str, str, int], list[Any]]:
    """Shards by (table, sharding type, kernel, count) as TorchRec enumerates and prices them."""
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder

    class WithGrid(EmbeddingBagCollectionSharder):  # type: ignore[misc]
        def sharding_types(self, compute_device_type: str) -> list[str]:
            return [*super().sharding_types(compute_device_type), "grid_shard"]

    module = module_of_tables()
    set_optimizers(module)
    found = {}
    sharders = [WithGrid(), EmbeddingCollectionSharder()]
    for option in enumerator(topology, width).enumerate(module, sharders):
        if option.compute_kernel in KERNELS:
            count = len({shard.offset[1] for shard in option.shards})
            key = (option.name, option.sharding_type, option.compute_kernel, count)
            found[key] = option.shards
    return found


def parity_model(width: int) -> Model:
    """The same tables as our model."""
    tables = [{"constraints": {"column_widths": [min(width, t["dim"])]}, **t} for t in TABLES]
    rules = {"cache_ratios": ["0.3"], "storage_model": "torcheasyrec"}
    return model(*tables, batch_per_rank=BATCH, **rules)


def parity_cluster(machines: int, ranks: int = 8, **links: Any) -> Cluster:
    """Machines at TorchRec's bandwidths."""
    given = {"intra_machine": "600GiB/s", "inter_machine": "12.5GiB/s", **links}
    return cluster(machines, ranks, interconnect=given)


def ours(machines: int, width: int) -> Options:
    """The same tables priced here, with TorchRec's bandwidths."""
    nodes = min(machines, 2)
    all_reduce = INTER * 8 * nodes / (2 * nodes - 1) / (2 if machines > 2 else 1)
    world = INTRA if machines == 1 else INTER
    across = float("inf") if machines == 1 else INTER
    links = Links(world, world, INTRA, INTRA, across, all_reduce, machines, 8 * machines)
    return price(parity_model(width), parity_cluster(machines), links=links)


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
    compared, seen = _compared(theirs(plain_topology(machines), width), ours(machines, width))
    assert compared >= 40
    assert seen >= WANTED[machines]


@pytest.mark.parametrize("domain", [2, 4])
def test_prices_in_domains_equal_torchrecs_own(domain: int) -> None:
    """16 ranks on 4 machines, in domains of 2 and of 4: prices equal TorchRec's estimate with our
    ``GeneralizedCommsBandwidth``, which knows the domain. Data-parallel is left out: TorchRec
    prices its all-reduce by network cards, whatever the domain."""
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    pytest.importorskip("torchrec")
    from milp_planner.integrations.torchrec.domains import topology_of

    place = parity_cluster(4, 4, domains={"machines": domain, "span": domain})
    world, across = (INTER, INTER) if domain == 2 else (INTRA, float("inf"))
    links = Links(world, world, INTRA, INTRA, across, INTER, 4 // domain, 16)
    given = parity_model(64)
    tables = [
        t.model_copy(update={"constraints": t.constraints.model_copy(update={
            "sharding_types": (("table_row_wise", "grid_shard") if t.output == "pooled"
                               else ("table_wise", "row_wise"))})})
        for t in given.tables
    ]  # fmt: skip
    parts = [given] if domain == 2 else [given, given.model_copy(update={"tables": tuple(tables)})]
    reference, seen = theirs(topology_of(place), 64), set()
    for each in parts:
        found = _compared(reference, price(each, place, links=links), {"data_parallel"})
        seen |= found[1]
    assert seen >= {"table_wise", "row_wise", "column_wise", "table_row_wise"}
    assert ("grid_shard" in seen) == (domain == 2)


def _compared(
    reference: dict[tuple[str, str, str, int], list[Any]],
    options: Options,
    but: set[str] | None = None,
) -> tuple[int, set[str]]:
    """The number of options compared, and their sharding types."""
    compared, seen = 0, set()
    for table, spec in enumerate(options.model.tables):
        for index in options.of(table):
            choice = options.choices[index]
            for kernel, mode in KERNELS.items():
                key = (spec.name, choice.sharding, kernel, choice.columns)
                unknown = choice.mode != mode or key not in reference
                if unknown or choice.sharding in (but or ()):
                    continue
                _compare(options, index, reference[key], f"{key}")
                compared, seen = compared + 1, seen | {choice.sharding}
    return compared, seen


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
