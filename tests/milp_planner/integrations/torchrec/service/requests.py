"""Requests to TorchRec's planning service, for the tests."""

from collections.abc import Sequence
from typing import Any

from torchrec.distributed.planner.dry_run import DryRunRequest
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import (
    HardwareConfig,
    PlannerConfig,
    PlannerSessionContext,
    PlannerVariant,
    ShardingPlanRequest,
)

from milp_planner.integrations.torchrec import TorchRecInputs

from ..models import bag_sharders, bags, topology

GIB = 2**30
SHAPES = [(40_000 * (i + 1), 64) for i in range(5)]
SKUS = {
    "wide": HardwareConfig(hbm_cap_bytes=GIB, ddr_cap_bytes=4 * GIB, hbm_mem_bw=8e9),
    "narrow": HardwareConfig(hbm_cap_bytes=60 * 2**20, ddr_cap_bytes=4 * GIB),
    "tiny": HardwareConfig(hbm_cap_bytes=2**20, ddr_cap_bytes=2**20),
}
ROOMY = {"wide": SKUS["wide"]}
LP = PlannerVariant.LINEAR_PROGRAMMING


def request(
    variant: PlannerVariant = LP, skus: Sequence[str] = (), config: Any = None, **more: Any
) -> ShardingPlanRequest:
    """A request for a small pooled collection on four ranks; for a dry run if SKUs are given."""
    given: dict[str, Any] = {
        "model": bags(SHAPES),
        "sharders": bag_sharders(),
        "world_size": 4,
        "local_world_size": 2,
        "batch_size": 64,
        "storage_reservation": FixedPercentageStorageReservation(0.1),
        "planner_config": config or PlannerConfig(planner_variant=variant),
        **more,
    }
    if skus:
        return DryRunRequest(sku_list=list(skus), training_framework="apf", **given)
    return ShardingPlanRequest(**given)


def context(asked: ShardingPlanRequest) -> PlannerSessionContext:
    """A fresh session."""
    return PlannerSessionContext(request=asked, results={})


def inputs(**more: Any) -> TorchRecInputs:
    """A small model, described for the command line."""
    given: dict[str, Any] = {
        "module": bags(SHAPES),
        "topology": topology(4, 2),
        "batch_size": 64,
        "storage_reservation": FixedPercentageStorageReservation(0.1),
        **more,
    }
    return TorchRecInputs(**given)
