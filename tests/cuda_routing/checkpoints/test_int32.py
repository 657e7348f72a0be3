"""Checkpoints of tables with int32 keys, as dynamicemb's runtime writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.checkpoints import Shard, inspect, load_shard, reshard, save_shard
from cuda_routing.errors import CheckpointError
from tests.cuda_routing.test_rules import plain_fmix64

KEYS = np.array([-7, -1000, 2**31 - 1, *range(60)], np.int64)


def runtime_owner(key: int, ranks: int) -> int:
    """The kernel's rule: zero-extend, hash, keep 32 bits, modulo."""
    return (plain_fmix64(key & 0xFFFFFFFF) & 0xFFFFFFFF) % ranks


def write_as_dynamicemb(folder: Path, ranks: int) -> None:
    """Raw files and metadata without a manifest; keys as int64, each on the rank that received
    it."""
    folder.mkdir()
    owner = np.array([runtime_owner(int(key), ranks) for key in KEYS])
    for rank in range(ranks):
        mine, end = KEYS[owner == rank], f"rank_{rank}.world_size_{ranks}"
        mine.tofile(folder / f"t_emb_keys.{end}")
        np.repeat(mine, 2).astype(np.float32).tofile(folder / f"t_emb_values.{end}")
    meta = {"dist_type": "hash_roundrobin", "evict_strategy": "LRU"}
    (folder / "t_opt_args.json").write_text(json.dumps(meta))


@pytest.mark.parametrize("ranks", [3, 6, 7])
def test_the_runtimes_checkpoint_is_taken_as_what_it_is(tmp_path: Path, ranks: int) -> None:
    """Read as int64, it is refused with the remedy; read as int32, every key finds its new rank."""
    write_as_dynamicemb(tmp_path / "old", ranks)
    with pytest.raises(CheckpointError, match=r"of int64 keys.*another type, index_type="):
        reshard(tmp_path / "old", tmp_path / "new", world_size=5)
    reshard(tmp_path / "old", tmp_path / "new5", world_size=5, index_type="int32")
    seen = []
    for rank in range(5):
        shard = load_shard(tmp_path / "new5", "t", rank=rank, world_size=5, rule="hash_roundrobin")
        assert [runtime_owner(int(key), 5) for key in shard.keys] == [rank] * len(shard.keys)
        np.testing.assert_array_equal(shard.values[:, 0], shard.keys.astype(np.float32))
        seen += shard.keys.tolist()
    assert sorted(seen) == sorted(KEYS.tolist())
    reshard(tmp_path / "new5", tmp_path / "new3", world_size=3)  # the metadata now says int32
    assert sum(inspect(tmp_path / "new3", "t").counts) == len(KEYS)


def test_a_save_says_what_its_keys_are(tmp_path: Path) -> None:
    """reshard reads the key type given to save_shard, which refuses a key too wide for it."""
    for rank in range(3):
        mine = np.array([k for k in KEYS if runtime_owner(int(k), 3) == rank])
        shard = Shard(mine, np.ones((len(mine), 1), np.float32))
        save_shard(
            tmp_path / "a", "t", shard, rank=rank, world_size=3, rule="hash_roundrobin",
            index_type="int32",
        )  # fmt: skip
    reshard(tmp_path / "a", tmp_path / "b", world_size=4, rule="roundrobin")
    assert sum(inspect(tmp_path / "b", "t").counts) == len(KEYS)
    wide = Shard(np.array([2**40]), np.ones((1, 1), np.float32))
    with pytest.raises(CheckpointError, match="does not fit index_type int32"):
        save_shard(tmp_path / "c", "t", wide, rank=0, world_size=1, rule=1, index_type="int32")
    assert not (tmp_path / "c").exists()
