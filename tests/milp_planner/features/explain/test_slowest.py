"""The slowest ranks, what they exchange, and how even the ranks are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formulations.result.outcome import StoppedBy, found
from milp_planner import Cluster, Model, plan
from milp_planner.features.explain.slowest import Imbalance, imbalance_of, slowest_of
from milp_planner.plans.placement import decode
from milp_planner.start.mapping import start_on

MODEL = {
    "name": "m", "workload": {"batch_per_rank": 128},
    "tables": [
        {"name": name, "rows": 1000, "dim": dim, "pooling_factor": 3, "constraints": {
            "pin": {"sharding_type": "table_wise", "mode": "HBM_ONLY", "ranks": [rank]}
        }}
        for name, dim, rank in (("a", 64, 0), ("b", 16, 0), ("c", 32, 1))
    ],
}  # fmt: skip
CLUSTER = {
    "name": "two", "profile": "h100", "machines": 1, "ranks_per_machine": 2, "hbm": "1GiB",
    "ddr": "1GiB", "interconnect": {"intra_machine": "450GB/s"},
}  # fmt: skip


def test_bytes_by_hand() -> None:
    """256 samples: 3 ids of 8 bytes per table in, dim values of 4 bytes out; the first rank is
    slowest."""
    info = slowest_of(plan(Model.from_dict(MODEL), Cluster.from_dict(CLUSTER), time_limit=5))
    assert [(r.rank, r.incoming, r.outgoing) for r in info.rows] == [
        (0, 2 * 256 * 3 * 8, 256 * (64 + 16) * 4), (1, 256 * 3 * 8, 256 * 32 * 4)
    ]  # fmt: skip
    assert [name for name, _ in info.rows[0].tables] == ["a", "b"]
    assert sum(time for _, time in info.rows[0].tables) == info.rows[0].time
    out = next(each for each in info.evenness if each.what == "out")
    assert (out.rank, out.most, out.mean) == (0, 256 * 80 * 4, 256 * 56 * 4)
    assert out.above == pytest.approx(80 / 56 - 1)


def test_imbalance_by_hand() -> None:
    """Shares of 3/4 and 1/4, equal shares, and everything on one rank."""
    found = imbalance_of(np.asarray([3, 1]))
    assert (found.variation, found.distance, found.chi) == (0.25, 0.5, 0.25)
    assert found.kl == pytest.approx(1 - (2 - 0.75 * np.log2(3)))
    assert imbalance_of(np.asarray([5, 5, 5])) == Imbalance(0.0, 0.0, 0.0, 0.0)
    one = imbalance_of(np.asarray([0, 7, 0, 0]))
    assert (one.chi, one.kl, one.distance) == (pytest.approx(1), pytest.approx(1), 1.5)


def test_megabytes_are_those_that_torchrec_printed(
    shared_data: Path, production: tuple[Path, Path]
) -> None:
    """Rank 28 of TorchRec's published plan is the slowest, with 840.93 MB in and 15,279.23 out."""
    printed = shared_data / "torchrec-production" / "sharding_stats_example.txt.gz"
    start = start_on(printed, *production, "busiest_rank", exact=True)
    compiled, today = start.compiled, start.placement
    outcome = found(compiled.instance, "today", today, StoppedBy.EXHAUSTED, None, None)
    info = slowest_of(decode(compiled.options, compiled.instance, outcome))
    first = info.rows[0]
    assert first.rank == 28 and first.tables[1][0].endswith("table_1290")
    assert (first.incoming or 0) / 2**20 == pytest.approx(840.93, abs=0.01)
    assert (first.outgoing or 0) / 2**20 == pytest.approx(15_279.23, rel=0.01)
