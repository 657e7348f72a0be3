"""Kernels with rows beyond host memory, and plans for one sharding group of 2D parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.model_parallel import DMPCollection
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.distributed.types import KeyValueParams
from torchrec.modules.embedding_configs import EmbeddingConfig
from torchrec.modules.embedding_modules import EmbeddingCollection

from .models import META, Case, bags, topology
from .test_planner import planner_for


def _table(name: str, rows: int, **more: Any) -> EmbeddingConfig:
    return EmbeddingConfig(
        name=name, num_embeddings=rows, embedding_dim=64, feature_names=[f"f_{name}"], **more
    )


@pytest.mark.parametrize(
    "kernel", ["key_value", "ssd_virtual_table", "dram_virtual_table", "dram_ssd_virtual_table"]
)
def test_kernels_beyond_host_memory(kernel: str) -> None:
    """Key-value and virtual tables are planned beside ordinary ones and keep their parameters."""
    virtual = {"use_virtual_table": True, "total_num_buckets": 40} if "virtual" in kernel else {}
    tables = [
        _table("kept", 4000, **virtual),
        _table("plain", 3000),
    ]
    case = Case(
        EmbeddingCollection(device=META, tables=tables),
        topology(4, 2),
        {
            "kept": ParameterConstraints(
                compute_kernels=[kernel],
                key_value_params=KeyValueParams(l2_cache_size=3),
                use_virtual_table=bool(virtual),
            )
        },
        batch_size=64,
        sharders=[EmbeddingCollectionSharder()],
    )
    planner = planner_for(case)
    table = planner.plan(case.module, case.sharders).plan[""]["kept"]
    assert (table.sharding_type, table.compute_kernel) == ("row_wise", kernel)
    assert table.ranks == [0, 1, 2, 3]
    assert table.key_value_params is not None and table.key_value_params.l2_cache_size == 3
    assert planner.outcome is not None and planner.outcome.gap == 0


def test_ssd_is_a_limit() -> None:
    """If no rank's SSD holds a key-value table, there is no plan, and SSD is named as the
    shortage."""
    from milp_planner.integrations.torchrec import NoPlan

    tables = [_table("big", 40_000)]
    case = Case(
        EmbeddingCollection(device=META, tables=tables),
        topology(2, ssd_cap=2**20),
        {"big": ParameterConstraints(compute_kernels=["key_value"])},
        batch_size=16,
        sharders=[EmbeddingCollectionSharder()],
    )
    with pytest.raises(NoPlan, match="SSD") as caught:
        planner_for(case).plan(case.module, case.sharders)
    assert caught.value.shortfalls[-1].tier == "ssd"


def test_a_cap_on_a_key_value_cache_is_read() -> None:
    """``max_l1_cache_size`` (MiB) caps the cache on every rank, plus 16 bytes per slot."""
    used = []
    for megabytes in (0, 1):
        limit = ParameterConstraints(
            compute_kernels=["key_value"],
            key_value_params=KeyValueParams(max_l1_cache_size=megabytes),
        )
        case = Case(
            EmbeddingCollection(device=META, tables=[_table("big", 400_000)]),
            topology(2),
            {"big": limit},
            batch_size=16,
            sharders=[EmbeddingCollectionSharder()],
        )
        planner = planner_for(case)
        planner.plan(case.module, case.sharders)
        [option] = planner.best_plan
        assert option.shards[0].storage is not None
        used.append(option.shards[0].storage.hbm)
    assert used[1] - used[0] == 2**20 + 16 * 2**20 // 256


@pytest.fixture
def four_ranks() -> Iterator[None]:
    """A process group of four that only tells TorchRec where its ranks are."""
    dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("rank", range(4))
def test_plan_of_a_sharding_group_becomes_every_groups(rank: int, four_ranks: None) -> None:
    """2D: TorchRec maps the plan of one group's ranks onto each group of the world.

    Two hosts of two ranks, groups of two: {0, 2} and {1, 3}, each with one rank on either host.
    """
    case = Case(bags([(40_000, 64), (50_000, 64), (90_000, 64)]), topology(2, 1), batch_size=64)
    plan = planner_for(case).plan(case.module, case.sharders)
    before = {name: table.ranks for name, table in plan.plan[""].items()}
    collection: Any = SimpleNamespace(_device=SimpleNamespace(type="cuda"))  # all it looks at
    DMPCollection._remap_sharding_plan(collection, plan, rank, step=2, sharding_group_size=2)
    group = [rank % 2, rank % 2 + 2]
    for name, table in plan.plan[""].items():
        assert table.ranks == [group[r] for r in before[name] or ()]
    used = {r for table in plan.plan[""].values() for r in table.ranks or ()}
    assert used == set(group)
