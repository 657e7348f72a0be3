"""Modules beyond plain collections: towers, feature processors, managed collision.

Tables that have to share a rank, whichever it is.

What each tier lacks, by hand.
"""

import itertools
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
from torchrec.distributed.planner.types import ParameterConstraints
from torchrec.modules.embedding_tower import EmbeddingTower, EmbeddingTowerCollection
from torchrec.modules.feature_processor_ import PositionWeightedModuleCollection
from torchrec.modules.fp_embedding_modules import FeatureProcessedEmbeddingBagCollection
from torchrec.modules.hash_mc_modules import HashZchManagedCollisionModule
from torchrec.modules.mc_embedding_modules import ManagedCollisionEmbeddingBagCollection
from torchrec.modules.mc_modules import ManagedCollisionCollection

from formulations import Settings, Status
from formulations.runtime.timing import CallTime
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import NoPlan
from milp_planner.integrations.torchrec.failure import shortfalls
from milp_planner.integrations.torchrec.problem import compile_problem
from tests.corpus import mistakes

from .models import (
    META,
    Case,
    FixedEnumerator,
    Mixed,
    bag_sharders,
    bags,
    bare_option,
    planned_for,
    planner_for,
    topology,
)
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
    case = Case(module, topology(8, 2, hbm=200 * 2**20), sharders=sharders)
    planner = planner_for(case)
    plan = planner.plan(module, sharders)
    assert planner.outcome.status == "optimal" and planner.outcome.placement is not None
    best = planner.best_plan
    assert {option.path for option in best} == set(plan.plan)
    assert_torchrec_accepts(best, case.reserved())
    rating = NoopPerfModel(case.topology).rate(best)
    assert planner.outcome.objective == pytest.approx(rating * 1e9, rel=1e-6)


def test_tables_of_a_tower_share_a_host() -> None:
    """All tables of a tower are on the two ranks of one host."""
    module, sharders = _towers()
    planner = planned_for(Case(module, topology(8, 2, hbm=200 * 2**20), sharders=sharders))
    hosts: dict[str, set[int]] = {}
    for option in planner.best_plan:
        if option.dependency:
            ranks = [shard.rank for shard in option.shards]
            hosts.setdefault(option.dependency, set()).update(
                r // 2 for r in ranks if r is not None
            )
    assert len(hosts) == 3
    assert all(len(used) == 1 for used in hosts.values())


def test_they_share_a_rank_and_nothing_else_is_lost() -> None:
    """The pair is on one rank, TorchRec accepts the plan, and only the pairing costs more."""
    case = Case(bags([(200_000, 64)] * 4), topology(2, 2, hbm=130 * 2**20), None, 256, 0.0)
    free, tied = planned_for(case), planner_for(case, together=[("t0", "t3")])
    plan = tied.plan(case.module, case.sharders)
    assert plan.plan[""]["t0"].ranks == plan.plan[""]["t3"].ranks
    assert plan.plan[""]["t0"].sharding_type in ("table_wise", "column_wise")
    assert_torchrec_accepts(tied.best_plan, case.reserved())
    assert free.rating <= tied.rating * (1 + 1e-9)
    again = tied.problem.placement_of(tied.best_plan)
    assert (again.options == tied.outcome.placement.options).all()


@pytest.mark.parametrize("sizes", [(5, 4, 3, 2, 1), (6, 6, 1, 1, 1), (3, 3, 3, 3, 3)])
def test_brute_force(sizes: tuple[int, ...]) -> None:
    """All placements of five tables on three ranks, with two pairs tied or none."""
    options = [bare_option(f"t{i}", [size], perf=float(size)) for i, size in enumerate(sizes)]
    capacity = 8
    case = Case(bags([(1, 4)]), topology(3, hbm=capacity), reserve=0.0)
    best: float | None = None
    for ranks in itertools.product(range(3), repeat=5):
        if ranks[0] != ranks[2] or ranks[1] != ranks[3]:
            continue
        loads = [sum(s for s, r in zip(sizes, ranks, strict=True) if r == k) for k in range(3)]
        if max(loads) <= capacity:
            best = min(best or 99.0, float(max(loads)))
    pairs = [["t0", "t2"], ["t1", "t3"]]
    planner = planner_for(case, enumerator=FixedEnumerator(options), together=pairs)
    if best is None:
        with pytest.raises(NoPlan, match="certified infeasible"):
            planner.plan(case.module, [])
        return
    problem = planner.prepare(case.module, [])
    chosen = planner._solved(problem, CallTime(60))
    assert planner.outcome is not None and planner.outcome.status == Status.OPTIMAL
    assert NoopPerfModel(case.topology).rate(chosen) == pytest.approx(best)


@pytest.mark.parametrize(("together", "sentence"), mistakes(__file__, "mistakes are sentences"))
def test_mistakes_are_sentences(together: Any, sentence: str) -> None:
    """Groups of one, unknown tables and tables in two groups."""
    case = Case(bags([(1000, 64)] * 3), topology(2))
    with pytest.raises(BadInput, match=sentence):
        planner_for(case, together=together).plan(case.module, case.sharders)


def test_a_table_that_is_never_whole() -> None:
    """A table that may only be row-wise cannot share a rank."""
    limits = {"t0": ParameterConstraints(sharding_types=["row_wise"])}
    case = Case(bags([(1000, 64)] * 2), topology(2), limits)
    with pytest.raises(BadInput, match="'t0' has no option on a single rank"):
        planner_for(case, together=[("t0", "t1")]).plan(case.module, case.sharders)


QUICK = Settings(time_limit=10.0, workers=2)


def test_packing_fails_although_the_sum_suffices() -> None:
    """Three shards of 6 on two ranks of 10 take 18 of 20 in total, but two must share a rank."""
    options = [bare_option(f"t{i}", [6]) for i in range(3)]
    hbm, ddr = shortfalls(compile_problem(options, topology(2, hbm=10)).instance, QUICK)
    assert (hbm.capacity, hbm.needed, hbm.short_by, hbm.short_per_place) == (20, 18, 0, 2)
    assert hbm.least is not None and hbm.least.least == 12
    assert ddr.short_by == 0
    assert hbm.lacks and not ddr.lacks
    assert "short by 0.000 GiB on a rank" in hbm.sentence()


def test_the_sum_is_short() -> None:
    """Even without a solve, the sum of the smallest options shows what is missing."""
    options = [
        bare_option("a", [6]),
        bare_option("a", [5, 5], "column_wise"),
        bare_option("b", [7]),
    ]
    hbm, _ = shortfalls(compile_problem(options, topology(1, hbm=8)).instance)
    assert (hbm.capacity, hbm.needed, hbm.short_by) == (8, 13, 5)
    assert hbm.least is None and hbm.short_per_place is None


def test_one_tier_can_stand_in_for_the_other() -> None:
    """For a table in HBM or in DDR, more of either tier is enough, and both are named."""
    fast, slow = bare_option("a", [6]), bare_option("a", [0])
    slow.compute_kernel = "fused_uvm"
    slow.shards[0].storage.ddr = 9  # type: ignore[union-attr]
    instance = compile_problem([fast, slow], topology(1, hbm=4, ddr=5)).instance
    found = shortfalls(instance, QUICK)
    assert [s.short_per_place for s in found] == [2, 4]
    assert [s.lacks for s in found] == [True, True]


def test_more_of_one_tier_alone_may_not_help() -> None:
    """If DDR is short, too, the error says that more HBM does not help."""
    option = bare_option("a", [6])
    option.shards[0].storage.ddr = 9  # type: ignore[union-attr]
    found = shortfalls(compile_problem([option], topology(1, hbm=4, ddr=5)).instance, QUICK)
    assert all(s.least is not None and s.least.impossible for s in found)
    assert "alone does not help" in found[0].sentence()
    assert [s.lacks for s in found] == [True, True]
