"""Shards of no time, as TorchRec places them."""

from __future__ import annotations

from milp_planner.integrations.replay.estimate import GIB, Bytes, Perf, Shard
from milp_planner.integrations.replay.greedy import _one_by_one, _Rank


def test_shards_of_no_time() -> None:
    """Four ranks of 20 GiB hold 10, 4, 7 and 4 GiB and take 3, 1, 2 and 1 ms; of three shards of 2
    GiB that take no time, rank 1, which stays the first of least time, gets all."""
    full = 20 * GIB
    there = [
        _Rank(number, Bytes(full - held * GIB, 0), Perf(time, 0.0, 0.0, 0.0))
        for number, (held, time) in enumerate([(10, 3.0), (4, 1.0), (7, 2.0), (4, 1.0)])
    ]
    shards = [Shard(Bytes(2 * GIB, 0), Perf(0.0, 0.0, 0.0, 0.0))] * 3
    assert _one_by_one(shards, there, 4) == (1, 1, 1)
    assert [(full - rank.room.hbm) // GIB for rank in there] == [10, 10, 7, 4]
