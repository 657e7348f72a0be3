"""The plan runs: DistributedModelParallel on two gloo processes equals the unsharded module."""

from typing import Any

import pytest
import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.storage_reservations import FixedPercentageStorageReservation
from torchrec.distributed.planner.types import PlannerError
from torchrec.distributed.types import ShardingPlan

from formulations import Settings
from milp_planner.integrations.torchrec import MilpShardingPlanner

from .two_processes import (
    SHAPES,
    WORLD,
    AnySharder,
    assert_trained_alike,
    collection,
    constraints,
    in_processes,
    train_one_step,
)


def _divide_by_zero(options: list[Any]) -> list[Any]:
    """A callback with a bug."""
    return options[: 1 // 0]


def _planner(ddr: int = 2**30, callbacks: list[Any] | None = None) -> MilpShardingPlanner:
    return MilpShardingPlanner(
        topology=Topology(
            world_size=WORLD, local_world_size=WORLD, compute_device="cpu", ddr_cap=ddr
        ),
        batch_size=3,
        constraints=constraints(),
        storage_reservation=FixedPercentageStorageReservation(0.0),
        stats=[],
        callbacks=callbacks,
        formulation="cpsat",
        settings=Settings(time_limit=10, workers=1),
    )


def _drop_in(module: nn.Module, sharders: list[Any]) -> ShardingPlan:
    return _planner().collective_plan(module, sharders, dist.group.WORLD)


def _failure(planner: MilpShardingPlanner) -> str:
    """The error that collective_plan raises on this rank."""
    try:
        planner.collective_plan(collection("meta"), [AnySharder()], dist.group.WORLD)
    except PlannerError as error:
        return f"{error.error_type.value}: {error}"
    except ZeroDivisionError as error:
        return f"ZeroDivisionError: {error}"
    return "no failure"


def _one_step(rank: int) -> dict[str, Any]:
    """A planned, sharded training step, then two plans that fail."""
    seen = train_one_step(rank, _drop_in)
    seen["no_plan"] = _failure(_planner(ddr=10))
    seen["mistake"] = _failure(_planner(callbacks=[_divide_by_zero]))
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Both processes' results."""
    return in_processes(_one_step, tmp_path_factory.mktemp("gloo"))


def test_the_plan_has_every_kind_and_the_step_equals_the_unsharded_module(
    seen: list[dict[str, Any]],
) -> None:
    """Table-, column-, row- and table-row-wise tables, and both ranks hold the same plan; pooled
    embeddings of each rank's batch, and all weights after one SGD step, agree."""
    assert_trained_alike(seen)
    kinds = {name: kind for name, (kind, _) in seen[0]["plan"].items()}
    assert kinds == {name: types[0] for name, (_, _, types) in SHAPES.items()}
    assert len(seen[0]["plan"]["columns"][1]) == 2


def test_a_failure_reaches_every_rank(seen: list[dict[str, Any]]) -> None:
    """If there is no plan, collective_plan raises on all ranks and leaves none waiting; of a
    mistake, rank 0 raises its error, and the others say that planning failed there, and why."""
    for rank in seen:
        assert rank["no_plan"].startswith("insufficient_storage: No plan exists")
        assert "DDR" in rank["no_plan"]
    assert seen[0]["mistake"].startswith("ZeroDivisionError")
    assert seen[1]["mistake"].startswith("other: planning failed on rank 0: integer division")
