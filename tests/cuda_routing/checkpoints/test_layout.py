"""Names and metadata of the documented layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuda_routing.checkpoints.layout import (
    Meta,
    data_path,
    find_tables,
    read_meta,
    world_size_of,
    write_json,
)
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule
from tests.cuda_routing.checkpoints.tables import save_table, some_keys


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


def test_block_size_follows_the_world() -> None:
    """400 rows on 3 ranks make blocks of 134; other rules have no blocks."""
    assert Meta(Rule.CONTINUOUS, 400).block_size(3) == 134
    assert Meta(Rule.ROUNDROBIN, 400).block_size(3) is None


def test_write_json_leaves_no_temporary(tmp_path: Path) -> None:
    """The JSON file appears alone, without a temporary file."""
    write_json(tmp_path / "x.json", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert data_path(tmp_path, "t", "keys", 0, 1).parent == tmp_path
