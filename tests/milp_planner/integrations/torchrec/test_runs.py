"""The plan runs: DistributedModelParallel on two gloo processes equals the unsharded module."""

from pathlib import Path
from typing import Any

import pytest
import torch.multiprocessing as mp

from . import two_processes
from .sharded_checks import assert_trained_alike, saved


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Both processes' results of one planned, sharded training step."""
    folder: Path = tmp_path_factory.mktemp("gloo")
    mp.spawn(
        two_processes.run,
        args=(str(folder / "store"), str(folder)),
        nprocs=two_processes.WORLD,
        join=True,
    )
    return saved(folder)


def test_the_plan_has_every_kind_and_is_shared(seen: list[dict[str, Any]]) -> None:
    """It has table-, column-, row- and table-row-wise tables, and both ranks hold the same plan."""
    assert seen[0]["plan"] == seen[1]["plan"]
    kinds = {name: kind for name, (kind, _) in seen[0]["plan"].items()}
    assert kinds == {name: types[0] for name, (_, _, types) in two_processes.SHAPES.items()}
    assert len(seen[0]["plan"]["columns"][1]) == 2


def test_step_equals_the_unsharded_module(seen: list[dict[str, Any]]) -> None:
    """Pooled embeddings of each rank's batch, and all weights after one SGD step, agree."""
    assert_trained_alike(seen)


def test_a_failure_reaches_every_rank(seen: list[dict[str, Any]]) -> None:
    """If there is no plan, collective_plan raises on all ranks and leaves none waiting."""
    for rank in seen:
        assert rank["no_plan"].startswith("insufficient_storage: No plan exists")
        assert "DDR" in rank["no_plan"]


def test_a_mistake_on_rank_0_reaches_every_rank(seen: list[dict[str, Any]]) -> None:
    """Rank 0 raises its error; the others say that planning failed there, and why."""
    assert seen[0]["mistake"].startswith("ZeroDivisionError")
    assert seen[1]["mistake"].startswith("other: planning failed on rank 0: integer division")
