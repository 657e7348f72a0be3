"""The provider's plan runs: two gloo ranks plan through TorchRec's orchestrator and train."""

from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner.api import ProductionPlannerOrchestrator
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import (
    PlannerConfig,
    PlannerSessionContext,
    PlannerVariant,
    ShardingPlanRequest,
)
from torchrec.distributed.types import ShardingPlan

from formulations import Settings
from milp_planner.integrations.torchrec.service import MilpPlannerProvider

from .. import two_processes as shared


def _one_step(rank: int) -> dict[str, Any]:
    """Plan through TorchRec's orchestrator and train a step; then plan with too little memory."""
    flags: dict[str, Any] = {}

    def through_torchrec(module: nn.Module, sharders: list[Any]) -> ShardingPlan:
        result = _orchestrated(module, sharders, ddr_gb=1.0)
        flags.update(success=result.success, planning_rank=result.is_planning_rank)
        return result.sharding_plan

    seen = shared.train_one_step(rank, through_torchrec)
    short = _orchestrated(shared.collection("meta"), [shared.AnySharder()], ddr_gb=1e-8)
    return {**seen, **flags, "short": (short.success, short.planner_failure_reason)}


def _orchestrated(module: nn.Module, sharders: list[Any], ddr_gb: float) -> Any:
    request = ShardingPlanRequest(
        model=module,
        sharders=sharders,
        world_size=shared.WORLD,
        local_world_size=shared.WORLD,
        batch_size=3,
        constraints=shared.constraints(),
        storage_reservation=FixedPercentageStorageReservation(0.0),
        compute_device="cpu",
        ddr_gb=ddr_gb,
        planner_config=PlannerConfig(planner_variant=PlannerVariant.LINEAR_PROGRAMMING),
    )
    provider = MilpPlannerProvider(formulation="cpsat", settings=Settings(time_limit=10, workers=1))
    flow = ProductionPlannerOrchestrator(
        DefaultPlannerExecutor(provider), "cpu", broadcast_pg=dist.group.WORLD
    )
    return flow.plan(request, PlannerSessionContext(request=request, results={}))["cpu"]


def test_two_ranks_train_on_the_providers_plan(tmp_path: Path) -> None:
    """Rank 0 plans, both hold the plan; forward and backward equal the unsharded module's. Without
    enough memory both ranks get the unsuccessful result, and neither is left waiting."""
    seen = shared.in_processes(_one_step, tmp_path)
    assert [rank["success"] for rank in seen] == [True, True]
    assert [rank["planning_rank"] for rank in seen] == [True, False]
    shared.assert_trained_alike(seen)
    for rank in seen:
        success, reason = rank["short"]
        assert not success and "No plan exists" in reason
