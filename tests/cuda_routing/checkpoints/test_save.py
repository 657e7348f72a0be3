"""Saving: what is refused, and what an interruption leaves behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuda_routing.checkpoints import Shard, inspect, save_shard
from cuda_routing.checkpoints import save as module
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule
from tests.cuda_routing.checkpoints.tables import save_table, some_keys


def test_lengths_must_agree(tmp_path: Path) -> None:
    """Three values for two keys are refused."""
    shard = Shard(np.arange(2), np.zeros((3, 4), np.float32))
    with pytest.raises(CheckpointError, match="3 values do not go with 2 keys"):
        save_shard(tmp_path, "t", shard, rank=0, world_size=1, rule=1)


def test_continuous_needs_rows_and_rank_its_range(tmp_path: Path) -> None:
    """A continuous table needs its size to be read back, and 2 ranks have no rank 2."""
    shard = Shard(np.arange(2), np.zeros((2, 4), np.float32))
    with pytest.raises(CheckpointError, match="rows="):
        save_shard(tmp_path, "t", shard, rank=0, world_size=1, rule="continuous")
    with pytest.raises(CheckpointError, match="0 … 1"):
        save_shard(tmp_path, "t", shard, rank=2, world_size=2, rule=1)


@pytest.mark.parametrize("writes", range(4))
def test_interrupted_overwrite_is_seen(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second save that was killed after any number of files does not pass for a whole
    checkpoint."""
    save_table(tmp_path, some_keys(40), 2, Rule.ROUNDROBIN)
    original, left = module._write, [writes]

    def dying(*args: object) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_write", dying)
    with pytest.raises(KeyboardInterrupt):
        save_table(tmp_path, some_keys(60, seed=1), 2, Rule.ROUNDROBIN)
    with pytest.raises(CheckpointError):
        inspect(tmp_path, "t")
