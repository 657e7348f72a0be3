"""The replay of pinned tables against TorchRec's own planner, on drawn settings."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torchrec")

from milp_planner.errors import FallsShort
from milp_planner.integrations.replay.estimate import Asked, Job
from milp_planner.integrations.replay.greedy import partition, room_of
from tests.milp_planner.integrations.torchrec.pinned import planned

BAGS = ("data_parallel", "table_wise", "column_wise", "row_wise", "table_row_wise",
        "table_column_wise", "grid_shard")  # fmt: skip
SEQUENCES = BAGS[:4]
KERNELS = ("fused", "fused", "fused", "fused_uvm", "fused_uvm_caching")


def drawn(draw: random.Random) -> tuple[list[Asked], Job, int, int]:
    """Tables with pinned types and kernels, machines, and bytes of HBM and DDR of a rank."""
    machines, local = draw.choice([(1, 2), (1, 4), (1, 8), (2, 4), (4, 2), (3, 4), (4, 8)])
    pooled = draw.random() < 0.6
    weighted = pooled and draw.random() < 0.2
    found, dims = [], (16, 64, 128, 192, 512)
    dims = dims if pooled else (draw.choice(dims),)
    for index in range(draw.randint(2, 14)):
        kind = draw.choice(BAGS if pooled else SEQUENCES)
        kernel = "dense" if kind == "data_parallel" else draw.choice(KERNELS)
        found.append(
            Asked(
                name=f"t{index}",
                rows=draw.choice([5, 1000, 1000, 40_000, 777_777]),
                dim=draw.choice(dims),
                element_bytes=4,
                optimizer=draw.choice(["sgd", "adam", "adagrad", "rowwise_adagrad"]),
                sharding_type=kind,
                kernel=kernel,
                pooled=pooled,
                lengths=tuple(draw.choice([0.5, 1.0, 3.0]) for _ in range(draw.randint(1, 3))),
                weighted=weighted,
                min_partition=draw.choice([None, None, 32, 64, 256]),
                load_factor=draw.choice([None, 0.3]) if kernel == "fused_uvm_caching" else None,
            )
        )
    wire = draw.choice([None, (2.0, 2.0)])
    job = Job(machines * local, local, draw.choice([64, 512]), wire)
    size = sum(4 * t.rows * t.dim for t in found)
    room = int(size * draw.choice([0.2, 0.6, 3.0])) + 2**28
    return found, job, room, int(size * draw.choice([0.0, 0.5, 3.0]))


@pytest.mark.parametrize("seed", range(120))
def test_replay_is_torchrecs(seed: int) -> None:
    """Every shard has TorchRec's rank, or neither finds a plan."""
    from torchrec.distributed.planner.types import PlannerError

    tables, job, hbm, ddr = drawn(random.Random(seed))
    try:
        theirs = planned(tables, job, hbm, ddr)
    except PlannerError:
        with pytest.raises(FallsShort, match="finds no rank"):
            partition(tables, job, room_of(hbm, ddr, tables, job.batch))
        return
    assert partition(tables, job, room_of(hbm, ddr, tables, job.batch)) == theirs
