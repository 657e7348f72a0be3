"""Shards of no time: as TorchRec places them today, and as its pull request 4613 would."""

from __future__ import annotations

import pytest

from milp_planner.integrations.replay.estimate import GIB, Bytes, Perf, Shard
from milp_planner.integrations.replay.greedy import _one_by_one, _Rank


@pytest.mark.parametrize(
    ("free_by_room", "ranks", "used"),
    [(False, (1, 1, 1), [10, 10, 7, 4]), (True, (1, 3, 1), [10, 8, 7, 6])],
)
def test_shards_of_no_time(free_by_room: bool, ranks: tuple[int, ...], used: list[int]) -> None:
    """Four ranks of 20 GiB hold 10, 4, 7 and 4 GiB and take 3, 1, 2 and 1 ms; three shards of 2 GiB
    take no time. Today rank 1 stays the first of least time and gets all three; by room, ties by
    rank, ranks 1 and 3 (4 GiB each), then 1 again (6 and 6)."""
    full = 20 * GIB
    there = [
        _Rank(number, Bytes(full - held * GIB, 0), Perf(time, 0.0, 0.0, 0.0))
        for number, (held, time) in enumerate([(10, 3.0), (4, 1.0), (7, 2.0), (4, 1.0)])
    ]
    shards = [Shard(Bytes(2 * GIB, 0), Perf(0.0, 0.0, 0.0, 0.0))] * 3
    assert _one_by_one(shards, there, 4, free_by_room) == ranks
    assert [(full - rank.room.hbm) // GIB for rank in there] == used
