"""The provider's plan runs: two gloo ranks plan through TorchRec's orchestrator and train."""

from pathlib import Path
from typing import Any

import pytest
import torch.multiprocessing as mp

from .. import two_processes
from ..sharded_checks import assert_trained_alike, saved
from . import two_ranks


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results of both processes."""
    folder: Path = tmp_path_factory.mktemp("gloo")
    arguments = (str(folder / "store"), str(folder))
    mp.spawn(two_ranks.run, args=arguments, nprocs=two_processes.WORLD, join=True)
    return saved(folder)


def test_two_ranks_train_on_the_providers_plan(seen: list[dict[str, Any]]) -> None:
    """Rank 0 plans, both hold the plan; forward and backward equal the unsharded module's."""
    assert [rank["success"] for rank in seen] == [True, True]
    assert [rank["planning_rank"] for rank in seen] == [True, False]
    assert_trained_alike(seen)


def test_no_plan_is_an_answer_on_both_ranks(seen: list[dict[str, Any]]) -> None:
    """Without enough memory both ranks get the unsuccessful result, and neither is left waiting."""
    for rank in seen:
        success, reason = rank["short"]
        assert not success and "No plan exists" in reason
