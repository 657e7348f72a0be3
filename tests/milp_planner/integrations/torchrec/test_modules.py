"""Modules beyond plain collections: towers, feature processors, managed collision."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn
from torchrec.distributed.embedding_tower_sharding import (
    EmbeddingTowerCollectionSharder,
    EmbeddingTowerSharder,
)
from torchrec.distributed.fp_embeddingbag import FeatureProcessedEmbeddingBagCollectionSharder
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.modules.embedding_tower import EmbeddingTower, EmbeddingTowerCollection
from torchrec.modules.feature_processor_ import PositionWeightedModuleCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.hash_mc_modules import HashZchManagedCollisionModule
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.modules.mc_modules import ManagedCollisionCollection

from .models import META, Case, Mixed, bag_sharders, bags, topology
from .test_planner import planner_for
from .torchrec_checks import assert_torchrec_accepts


def _towers() -> tuple[nn.Module, list[Any]]:
    """A tower, a collection of two towers, and a free table."""
    tower = EmbeddingTower(bags([(100_000, 64), (50_000, 64)], "a"), nn.Identity())
    two = EmbeddingTowerCollection(
        [
            EmbeddingTower(bags([(100_000, 64), (50_000, 64)], "b"), nn.Identity()),
            EmbeddingTower(bags([(100_000, 64)], "c"), nn.Identity()),
        ]
    )
    module = Mixed({"one": tower, "two": two, "free": bags([(300_000, 64)], "d")})
    return module, [EmbeddingTowerSharder(), EmbeddingTowerCollectionSharder(), *bag_sharders()]


def _feature_processed() -> tuple[nn.Module, list[Any]]:
    """A collection behind position weights; row-wise sharding is offered only on request."""
    inner = bags([(200_000, 64), (90_000, 32)], "p", weighted=True)
    weights = PositionWeightedModuleCollection({"pf0": 10, "pf1": 10}, device=META)
    module = FeatureProcessedEmbeddingBagCollection(inner, weights)
    return Mixed({"fp": module}), [FeatureProcessedEmbeddingBagCollectionSharder()]


def _managed_collision() -> tuple[nn.Module, list[Any]]:
    """A collection whose ids managed collision remaps."""
    inner = bags([(10_240, 64)], "z")
    managed = {"z0": HashZchManagedCollisionModule(10_240, META, total_num_buckets=8)}
    collection = ManagedCollisionCollection(managed, inner.embedding_bag_configs())
    module = ManagedCollisionEmbeddingBagCollection(inner, collection)
    return Mixed({"mc": module}), [ManagedCollisionEmbeddingBagCollectionSharder()]


@pytest.mark.parametrize("build", [_towers, _feature_processed, _managed_collision])
def test_planned_and_accepted(build: Any) -> None:
    """Each is proved optimal, and TorchRec accepts the plan and rates it alike."""
    module, sharders = build()
    case = Case(module, topology(8, 2, hbm=200 * 2**20))
    planner = planner_for(case)
    plan = planner.plan(module, sharders)
    assert planner.problem is not None and planner.outcome is not None
    assert planner.outcome.status == "optimal" and planner.outcome.placement is not None
    best = planner.problem.apply(planner.outcome.placement)
    assert {option.path for option in best} == set(plan.plan)
    reserved = case.reservation.reserve(case.topology, case.batch_size, module, sharders)
    assert_torchrec_accepts(best, reserved)
    rating = NoopPerfModel(case.topology).rate(best)
    assert planner.outcome.objective == pytest.approx(rating * 1e9, rel=1e-6)


def test_tables_of_a_tower_share_a_host() -> None:
    """All tables of a tower are on the two ranks of one host."""
    module, sharders = _towers()
    planner = planner_for(Case(module, topology(8, 2, hbm=200 * 2**20)))
    planner.plan(module, sharders)
    assert planner.problem is not None and planner.outcome is not None
    assert planner.outcome.placement is not None
    hosts: dict[str, set[int]] = {}
    for option in planner.problem.apply(planner.outcome.placement):
        if option.dependency:
            ranks = [shard.rank for shard in option.shards]
            hosts.setdefault(option.dependency, set()).update(
                r // 2 for r in ranks if r is not None
            )
    assert len(hosts) == 3
    assert all(len(used) == 1 for used in hosts.values())
