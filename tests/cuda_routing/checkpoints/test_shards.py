"""Interrupted and truncated saves are detected, whichever file is affected.

The journal: which bytes it cuts off and what it refuses.

Saving: what is refused, and what an interruption leaves behind.

Loading returns what was saved, and refuses what does not fit this run, with the remedy.

Keys find their new rank for every pair of rules and world sizes.
"""

import itertools
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.checkpoints import Shard, inspect, load_shard, save_shard
from cuda_routing.checkpoints import save as module
from cuda_routing.checkpoints.journal import Journal, resume
from cuda_routing.checkpoints.layout import KINDS, Meta, data_path, manifest_path, meta_path
from cuda_routing.checkpoints.ownership import global_keys, new_places
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule, block_size_of, local_keys, owners
from tests.cuda_routing.checkpoints.tables import ROWS, save_table, some_keys


@pytest.fixture()
def saved(tmp_path: Path) -> Path:
    """A whole checkpoint of three ranks."""
    save_table(tmp_path, some_keys(90), 3, Rule.ROUNDROBIN)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("whole", [False, True])
def test_truncated_or_missing_file(saved: Path, kind: str, manifest: bool, whole: bool) -> None:
    """A file that lacks its last byte, or all of them, is named, with and without a manifest."""
    if not manifest:
        forget_manifests(saved)
    path = data_path(saved, "t", kind, 1, 3)
    path.unlink() if whole else path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=kind if whole else f"{kind}.rank_1"):
        inspect(saved, "t")


@pytest.mark.parametrize("kind", ["values", "keys"])
def test_whole_rows_missing_without_manifest(saved: Path, kind: str) -> None:
    """If whole rows of one file are lost, it disagrees with the others."""
    forget_manifests(saved)
    path = data_path(saved, "t", kind, 0, 3)
    path.write_bytes(path.read_bytes()[: 12 * 8])
    with pytest.raises(CheckpointError, match="cut short"):
        inspect(saved, "t")


def test_missing_manifest(saved: Path) -> None:
    """A rank that wrote its data but not its manifest did not finish."""
    manifest_path(saved, "t", 1, 3).unlink()
    with pytest.raises(CheckpointError, match="rank 1 did not finish"):
        inspect(saved, "t")


def test_mixed_saves(tmp_path: Path) -> None:
    """Files of two saves in one folder are told apart by their tags."""
    save_table(tmp_path, some_keys(30), 2, Rule.ROUNDROBIN, tag="step-1")
    old = manifest_path(tmp_path, "t", 1, 2).read_text()
    save_table(tmp_path, some_keys(30), 2, Rule.ROUNDROBIN, tag="step-2")
    manifest_path(tmp_path, "t", 1, 2).write_text(old)
    with pytest.raises(CheckpointError, match=r"'step-1'.*'step-2'"):
        inspect(tmp_path, "t")


def forget_manifests(folder: Path) -> None:
    """Make the folder look like a checkpoint of dynamicemb's."""
    for path in folder.glob("*_manifest.*"):
        path.unlink()
    meta_path(folder, "t").write_text('{"dist_type": "roundrobin"}')


def test_unvouched_bytes_are_cut_off(tmp_path: Path) -> None:
    """Bytes written after the last journal, and unknown files, are removed."""
    journal = Journal({"a": 1})
    journal.append(tmp_path, "x", memoryview(b"1234"), False)
    journal.save(tmp_path, False)
    journal.append(tmp_path, "x", memoryview(b"56"), False)
    (tmp_path / "y").write_text("leftover")
    found = resume(tmp_path, {"a": 1})
    assert (tmp_path / "x").read_bytes() == b"1234"
    assert not (tmp_path / "y").exists()
    assert found.sizes == {"x": 4}
    found.append(tmp_path, "x", memoryview(b"78"), False)
    assert (tmp_path / "x").read_bytes() == b"123478"


def test_shorter_than_vouched_is_refused(tmp_path: Path) -> None:
    """A file that is shorter than the journal says cannot be continued."""
    journal = Journal({})
    journal.append(tmp_path, "x", memoryview(b"1234"), False)
    journal.save(tmp_path, False)
    (tmp_path / "x").write_bytes(b"12")
    with pytest.raises(CheckpointError, match="lost data"):
        resume(tmp_path, {})


def test_without_a_journal_everything_starts_anew(tmp_path: Path) -> None:
    """Files of a run that was killed before its first journal are removed."""
    (tmp_path / "x").write_text("?")
    assert resume(tmp_path, {}).sizes == {}
    assert not (tmp_path / "x").exists()


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
    """A second save killed after any number of files does not pass for a whole checkpoint."""
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


WORLDS = range(1, 17)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Rule, Rule)))
def test_every_pair_of_rules_and_world_sizes(before: Rule, after: Rule) -> None:
    """Every key keeps its identity and moves to the rank that routing gives, for worlds 1 to 16."""
    keys = some_keys(120)
    for old in WORLDS:
        block = block_size_of(ROWS, old)
        owner = owners(keys, old, before, block_size=block)
        stored = local_keys(keys, old, before, block_size=block)
        for rank in range(old):
            mine = owner == rank
            found = global_keys(stored[mine], rank, old, Meta(before, ROWS), "f")
            np.testing.assert_array_equal(found, keys[mine])
        for new in WORLDS:
            size = block_size_of(ROWS, new)
            place, local = new_places(keys, new, Meta(after, ROWS), "f")
            np.testing.assert_array_equal(place, owners(keys, new, after, block_size=size))
            np.testing.assert_array_equal(local, local_keys(keys, new, after, block_size=size))


def test_negative_and_huge_keys_survive_hashed_rules() -> None:
    """Keys of any 64 bits keep their identity under the rules that do not renumber."""
    keys = np.array([-(2**63), -5, -1, 0, 2**63 - 1])
    for rule in (Rule.ROUNDROBIN, Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT):
        owner, local = new_places(keys, 5, Meta(rule), "f")
        assert local.tolist() == keys.tolist()
        for rank in range(5):
            mine = owner == rank
            found = global_keys(keys[mine], rank, 5, Meta(rule), "f")
            assert found.tolist() == keys[mine].tolist()


def test_a_key_on_the_wrong_rank_is_refused() -> None:
    """A wrong dist_type is noticed because keys are on ranks that do not own them."""
    with pytest.raises(CheckpointError, match=r"key 5 belongs to rank 1 of 4.*source_rule"):
        global_keys(np.array([4, 5]), 0, 4, Meta(Rule.ROUNDROBIN), "file")


def test_keys_that_continuous_would_merge_are_refused() -> None:
    """A key beyond the table, or a local key beyond its block, is refused and named."""
    with pytest.raises(CheckpointError, match="key 900 lies outside the table's 400 rows"):
        new_places(np.array([1, 900]), 4, Meta(Rule.CONTINUOUS, ROWS), "file")
    with pytest.raises(CheckpointError, match="key -1 lies outside"):
        new_places(np.array([-1]), 4, Meta(Rule.CONTINUOUS, ROWS), "file")
    with pytest.raises(CheckpointError, match="local key 100 lies beyond the block of 100"):
        global_keys(np.array([3, 100]), 1, 4, Meta(Rule.CONTINUOUS, ROWS), "file")


def test_continuous_needs_rows() -> None:
    """Without the table's size, continuous cannot be undone, and the error asks for rows=."""
    with pytest.raises(CheckpointError, match="pass rows="):
        new_places(np.array([1]), 4, Meta(Rule.CONTINUOUS), "file")
