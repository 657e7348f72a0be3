"""The guard against sums beyond 62 bits counts every shard once."""

from __future__ import annotations

import pytest

from formulations.errors import InstanceError
from formulations.instance import Instance, Objective, Where
from formulations.instance.build import Block, InstanceBuilder, Shard


def every_rank(*costs_and_runs: tuple[int, int]) -> Instance:
    """One table with a shard on each of 1,024 ranks, in runs of equal cost."""
    builder = InstanceBuilder([range(1024)], ["step"], [], Objective.TOTAL)
    builder.add_table("t")
    shards = [Shard(cost=[cost], repeat=run) for cost, run in costs_and_runs]
    builder.add_option("o", [Block(Where.EVERY_RANK, shards)])
    return builder.build()


def test_runs_count_their_own_length() -> None:
    """512 + 512 shards of 2^51 are 2^61, which is allowed, however many runs list them."""
    assert every_rank((2**51, 512), (2**51 - 1, 512)).num_ranks == 1024
    with pytest.raises(InstanceError, match=r"beyond 2\^62"):
        every_rank((2**52, 1023), (2**53 - 1, 1))


def test_a_shared_shard_counts_for_every_rank() -> None:
    """1,024 shards of 2^52 reach 2^62."""
    with pytest.raises(InstanceError, match=r"beyond 2\^62"):
        every_rank((2**52, 1))
    assert every_rank((2**52 - 1, 1)).num_tables == 1
