"""Plans kept on disk: found again for the same question, and for no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torchrec.distributed.planner.dry_run import DryRunOrchestrator
from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.types import ShardingPlan

from formulations import Settings, Status, solve
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.service import DiskPlanCache, MilpPlannerProvider
from milp_planner.integrations.torchrec.service.provider import request_fingerprint

from ..models import bags
from .requests import QUICK, SKUS, context, request


def swept(cache: PlanCache, asked: Any, **planner: Any) -> tuple[Any, dict[str, bool]]:
    """Result on the SKU ``narrow`` and the session's ``cache_hit``."""
    ctx = context(asked)
    provider = MilpPlannerProvider(SKUS, cache, **{"settings": QUICK, **planner})
    results = DryRunOrchestrator(DefaultPlannerExecutor(provider)).plan(asked, ctx)
    return results["narrow"], ctx.cache_hit


def test_a_plan_comes_back_whole(tmp_path: Path) -> None:
    """Stored and read, a plan and its metadata are the same; an unknown key is absent."""
    result, _ = swept(DiskPlanCache(tmp_path / "made"), request(skus=["narrow"]))
    cache = DiskPlanCache(tmp_path / "new" / "folder")
    assert isinstance(cache, PlanCache)
    metadata = CacheMetadata("me", "narrow", 4, {"note": "x"})
    cache.put("abc-1", result.sharding_plan, metadata)
    found = cache.get("abc-1")
    assert found is not None
    assert str(found[0]) == str(result.sharding_plan) and found[1] == metadata
    assert cache.get("abc-2") is None
    assert [p.name for p in cache.folder.iterdir()] == ["abc-1.json"], "no temporary is left"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"plan": 1, "metadata": {}}'])
def test_a_damaged_entry_is_absent(tmp_path: Path, text: str) -> None:
    """What cannot be read is planned anew, never a crash."""
    (tmp_path / "k.json").write_text(text)
    assert DiskPlanCache(tmp_path).get("k") is None


@pytest.mark.parametrize("key", ["", "../k", "a/b", "k" * 201])
def test_a_key_cannot_leave_the_folder(tmp_path: Path, key: str) -> None:
    """Keys are file names: paths are refused."""
    with pytest.raises(BadInput, match="letters, digits"):
        DiskPlanCache(tmp_path).put(key, ShardingPlan({}), CacheMetadata())


def test_the_same_request_is_not_solved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hit gives the same plan with the same figures, and no solver runs."""
    cache, asked = DiskPlanCache(tmp_path), request(skus=["narrow"])
    first, hits = swept(cache, asked)
    assert hits == {"narrow": False}

    def forbidden(*_: object) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr("milp_planner.integrations.torchrec.planner.solve", forbidden)
    again, hits = swept(cache, request(skus=["narrow"]))
    assert hits == {"narrow": True}
    assert str(again.sharding_plan) == str(first.sharding_plan)
    assert again.max_rank_perf == first.max_rank_perf
    assert again.request_hash == first.request_hash


def test_another_model_under_the_same_hash_is_solved(tmp_path: Path) -> None:
    """TorchRec's hash leaves the model out; a cached plan of another model is not taken."""
    cache = DiskPlanCache(tmp_path)
    first, _ = swept(cache, request(skus=["narrow"]))
    other = request(skus=["narrow"], model=bags([(9_000, 64), (70_000, 32)]))
    second, hits = swept(cache, other)
    assert first.request_hash == second.request_hash
    assert hits == {"narrow": False}
    assert set(second.sharding_plan.plan[""]) == {"t0", "t1"}
    assert swept(cache, request(skus=["narrow"], batch_size=128))[1] == {"narrow": False}
    assert swept(cache, request(skus=["narrow"]), objective="critical_path")[1] == {"narrow": False}


def test_a_plan_that_was_sought_less_is_not_taken(tmp_path: Path) -> None:
    """One not proved best counts only with as much time, of the same formulation; never a lie."""
    asked = request(skus=["narrow"])
    planner, problem = _prepared(asked, DiskPlanCache(tmp_path), time_limit=5.0)
    best = solve(problem.instance, "cpsat", Settings(time_limit=5.0, workers=1))
    assert best.status == Status.OPTIMAL
    rough = replace(best, status=Status.FEASIBLE, settings={"time_limit": 5.0})
    assert planner._as_good_as_now(problem.instance, best)
    assert planner._as_good_as_now(problem.instance, replace(rough, formulation="auto"))
    assert not planner._as_good_as_now(problem.instance, rough), "cpsat is not auto"
    lied = replace(best, objective=(best.objective or 0) - 1)
    assert not planner._as_good_as_now(problem.instance, lied)
    longer, _ = _prepared(asked, DiskPlanCache(tmp_path), time_limit=6.0)
    assert longer._as_good_as_now(problem.instance, best)
    assert not longer._as_good_as_now(problem.instance, replace(rough, formulation="auto"))


def test_key_of_a_production_request() -> None:
    """A dry run's key is TorchRec's fingerprint; other requests get one a SKU too."""
    dry = request(skus=["narrow"])
    assert request_fingerprint(dry, "narrow") == dry.fingerprint("narrow")  # type: ignore[attr-defined]
    plain = request()
    keys = {request_fingerprint(plain, sku) for sku in ("a", "b", "a")}
    assert len(keys) == 2 and all(len(key) == 16 for key in keys)


def _prepared(asked: Any, cache: PlanCache, time_limit: float) -> tuple[Any, Any]:
    """The provider's planner for a request, and its compiled problem."""
    provider = MilpPlannerProvider(SKUS, cache, settings=Settings(time_limit=time_limit))
    ctx = context(asked)
    board = provider.build_topology("narrow", asked, ctx)
    planner: Any = provider.build_planner(
        "narrow", topology=board, storage_reservation=asked.storage_reservation, ctx=ctx
    )
    return planner, planner.prepare(asked.model, asked.sharders)
