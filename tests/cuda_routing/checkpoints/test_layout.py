"""Names and metadata of the documented layout.

Checkpoints of tables with int32 keys, as dynamicemb's runtime writes them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.checkpoints import Shard, inspect, load_shard, reshard, save_shard
from cuda_routing.checkpoints.layout import (
    data_path,
    find_tables,
    read_meta,
    world_size_of,
    write_json,
)
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule
from tests.cuda_routing.checkpoints.tables import save_table, some_keys
from tests.cuda_routing.test_rules import plain_fmix64


def test_file_names(tmp_path: Path) -> None:
    """File names are dynamicemb's."""
    save_table(tmp_path, some_keys(9), 2, Rule.HASH_ROUNDROBIN, table="item_id")
    names = {path.name for path in tmp_path.iterdir()}
    for kind in ("keys", "values", "scores", "opt_values"):
        assert f"item_id_emb_{kind}.rank_1.world_size_2" in names
    meta = json.loads((tmp_path / "item_id_opt_args.json").read_text())
    assert meta["dist_type"] == "hash_roundrobin"
    assert meta["evict_strategy"] == "LRU"


def test_missing_dist_type_means_roundrobin(tmp_path: Path) -> None:
    """Old metadata without a dist_type means roundrobin; other entries are kept."""
    (tmp_path / "t_opt_args.json").write_text('{"lr": 0.1}')
    meta = read_meta(tmp_path, "t")
    assert meta.rule is Rule.ROUNDROBIN
    assert meta.as_json() == {"lr": 0.1, "dist_type": "roundrobin"}


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"dist_type": "nearest"}'])
def test_broken_metadata(tmp_path: Path, text: str) -> None:
    """Metadata that is truncated or of another kind is refused with its path."""
    (tmp_path / "t_opt_args.json").write_text(text)
    with pytest.raises(CheckpointError, match="t_opt_args"):
        read_meta(tmp_path, "t")


def test_tables_and_world_sizes(tmp_path: Path) -> None:
    """Tables are found by their key files; two world sizes in one folder are refused."""
    save_table(tmp_path, some_keys(9), 2, Rule.ROUNDROBIN, table="a")
    save_table(tmp_path, some_keys(9), 3, Rule.ROUNDROBIN, table="b_emb_keys")
    assert find_tables(tmp_path) == {"a": 2, "b_emb_keys": 3}
    with pytest.raises(CheckpointError, match="it has a, b_emb_keys"):
        world_size_of(tmp_path, "c")
    save_table(tmp_path, some_keys(9), 4, Rule.ROUNDROBIN, table="a")
    with pytest.raises(CheckpointError, match="world sizes 2, 4"):
        find_tables(tmp_path)


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    """The error tells a folder without key files from a folder that does not exist."""
    with pytest.raises(CheckpointError, match="holds no"):
        find_tables(tmp_path)
    with pytest.raises(CheckpointError, match="not a folder"):
        find_tables(tmp_path / "x")


def test_write_json_leaves_no_temporary(tmp_path: Path) -> None:
    """The JSON file appears alone, without a temporary file."""
    write_json(tmp_path / "x.json", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert data_path(tmp_path, "t", "keys", 0, 1).parent == tmp_path


KEYS = np.array([-7, -1000, 2**31 - 1, *range(60)], np.int64)


def runtime_owner(key: int, ranks: int) -> int:
    """The kernel's rule: zero-extend, hash, keep 32 bits, modulo."""
    return (plain_fmix64(key & 0xFFFFFFFF) & 0xFFFFFFFF) % ranks


def write_as_dynamicemb(folder: Path, ranks: int) -> None:
    """Raw files and metadata without manifest; keys as int64, each on the rank that received it."""
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
