"""What every rank receives, which TorchRec's estimate leaves out."""

from __future__ import annotations

import logging

import pytest
from torch import nn
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption

from milp_planner.integrations.torchrec.received import above_estimate, received_bytes

from .models import Case, bags, sequences, topology
from .test_planner import planner_for


def planned(module: nn.Module, sharding: str) -> list[ShardingOption]:
    """The chosen options of a module's table on two ranks."""
    limits = ParameterConstraints(sharding_types=[sharding], num_poolings=[2.0])
    limits.pooling_factors = [5.0]
    case = Case(module, topology(2), constraints={"t0": limits, "s0": limits}, batch_size=100)
    planner = planner_for(case, stats=None)
    planner.plan(case.module, case.sharders)
    assert planner.best_plan is not None
    return planner.best_plan


@pytest.mark.parametrize(
    ("module", "sharding", "embeddings"),
    [
        (bags([(1000, 64)]), "table_wise", 2 * 100),
        (sequences([(1000, 64)]), "table_wise", 2 * 5 * 100),
        (bags([(1000, 64)]), "data_parallel", 0),
    ],
)
def test_received_bytes_by_hand(module: nn.Module, sharding: str, embeddings: int) -> None:
    """Two bags or sequences a sample of 100 samples: an embedding a bag, or one of five ids."""
    limits = dict.fromkeys(("t0", "s0"), ParameterConstraints(num_poolings=[2.0]))
    assert received_bytes(planned(module, sharding), limits) == embeddings * 64 * 4


def test_ranks_far_above_the_estimate_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """A table of 250 KiB whose batch returns 50 KiB to each rank; nothing on a single rank."""
    with caplog.at_level(logging.WARNING):
        best = planned(bags([(1000, 64)]), "table_wise")
    assert "TorchRec's estimate, which leaves out the" in caplog.text
    assert above_estimate(best, None, 1) is None
