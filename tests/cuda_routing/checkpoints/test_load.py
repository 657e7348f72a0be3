"""Loading returns what was saved, and refuses what does not fit this run, with the remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cuda_routing.checkpoints import Shard, inspect, load_shard, save_shard
from cuda_routing.checkpoints.layout import data_path
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule
from tests.cuda_routing.checkpoints.tables import assert_holds, save_table, some_keys


@pytest.mark.parametrize("rule", list(Rule))
def test_saved_comes_back(rule: Rule, tmp_path: Path) -> None:
    """All four kinds of file of every rank come back, under every rule."""
    save_table(tmp_path, some_keys(80), 3, rule)
    assert_holds(tmp_path, some_keys(80))


def test_empty_rank_keeps_its_shape(tmp_path: Path) -> None:
    """A rank without rows comes back with the embedding dimension it was saved with."""
    shard = Shard(np.zeros(0, np.int64), np.zeros((0, 16), np.float32))
    save_shard(tmp_path, "t", shard, rank=0, world_size=1, rule=1)
    found = load_shard(tmp_path, "t", rank=0, world_size=1, rule=1)
    assert found.values.shape == (0, 16)
    assert found.scores is None


def test_other_world_size_or_rule_names_the_fix(tmp_path: Path) -> None:
    """The error says how it was saved, what runs now, and which call helps."""
    save_table(tmp_path, some_keys(10), 2, Rule.HASH_ROUNDROBIN)
    for world, rule in ((4, "hash_roundrobin"), (2, "roundrobin")):
        with pytest.raises(CheckpointError) as caught:
            load_shard(tmp_path, "t", rank=0, world_size=world, rule=rule)
        said = str(caught.value)
        assert "saved by 2 ranks with dist_type hash_roundrobin" in said
        assert f"reshard(source, target, world_size={world}, rule={rule!r})" in said


def test_inspect_counts_without_reading(tmp_path: Path) -> None:
    """It reports rows per rank, row sizes, rule and size of the table."""
    save_table(tmp_path, np.arange(10), 4, Rule.ROUNDROBIN)
    info = inspect(tmp_path, "t")
    assert info.counts == [3, 3, 2, 2]
    assert info.row_bytes == {"keys": 8, "values": 12, "scores": 8, "opt_values": 8}
    assert (info.world_size, info.rule, info.checked) == (4, Rule.ROUNDROBIN, True)


def test_damage_is_found(tmp_path: Path) -> None:
    """A flipped byte fails its checksum."""
    save_table(tmp_path, some_keys(10), 1, Rule.ROUNDROBIN)
    path = data_path(tmp_path, "t", "scores", 0, 1)
    data = bytearray(path.read_bytes())
    data[0] ^= 255
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match=r"scores.*damaged"):
        load_shard(tmp_path, "t", rank=0, world_size=1, rule=1)
