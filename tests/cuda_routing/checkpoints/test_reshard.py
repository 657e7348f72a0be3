"""Re-sharding files: all pairs of rules, resumed after any interruption, nothing lost."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuda_routing.checkpoints import inspect, load_shard, reshard
from cuda_routing.checkpoints import journal as journal_module
from cuda_routing.checkpoints.journal import NAME
from cuda_routing.checkpoints.layout import data_path, manifest_path, meta_path, read_meta
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule
from tests.cuda_routing.checkpoints.tables import ROWS, assert_holds, save_table, some_keys

ROOT = Path(__file__).resolve().parents[3]
PAIRS = list(itertools.product(Rule, Rule))


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_every_pair_of_rules(before: Rule, after: Rule, tmp_path: Path) -> None:
    """Files of drawn pairs of world sizes, for every pair of rules, with all four kinds of file."""
    keys = some_keys(150)
    draw = np.random.default_rng([before, after])
    for step, (old, new) in enumerate(draw.integers(1, 17, size=(6, 2)).tolist()):
        source, target = tmp_path / f"s{step}", tmp_path / f"t{step}"
        save_table(source, keys, old, before)
        done = reshard(source, target, world_size=new, rule=after, chunk_rows=40, durable=False)
        assert done.rows == {"t": 150}
        assert_holds(target, keys)
        assert not target.with_name(f"{target.name}.partial").exists()
        assert not (target / NAME).exists()


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_every_pair_of_world_sizes(before: Rule, after: Rule, tmp_path: Path) -> None:
    """A quarter of the pairs of world sizes 1 to 16 per pair of rules, which together cover all
    pairs."""
    keys = some_keys(60)
    for old in range(1, 17):
        source = tmp_path / f"from-{old}"
        save_table(source, keys, old, before, full=False)
        for new in range(1 + (old + before + after) % 4, 17, 4):
            target = tmp_path / f"{old}-to-{new}"
            reshard(source, target, world_size=new, rule=after, durable=False)
            assert_holds(target, keys, full=False)


class Killed(Exception):
    """Stands in for a kill."""


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    old=st.integers(1, 6), new=st.integers(1, 6), before=st.sampled_from(list(Rule)),
    after=st.sampled_from(list(Rule)), deaths=st.lists(st.integers(0, 60), min_size=1, max_size=4),
    torn=st.booleans(),
)  # fmt: skip
def test_interrupted_anywhere_and_resumed(
    tmp_path_factory: pytest.TempPathFactory,
    old: int, new: int, before: Rule, after: Rule, deaths: list[int], torn: bool,
) -> None:  # fmt: skip
    """Killed at drawn writes, with half a write on disk, it ends with the whole result."""
    folder = tmp_path_factory.mktemp("resume")
    keys = some_keys(90)
    save_table(folder / "s", keys, old, before, table="a")
    save_table(folder / "s", keys[:30], old, before, table="b")
    options = {"world_size": new, "rule": after, "chunk_rows": 20, "durable": False}
    for death in deaths:
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, death, torn)
            try:
                reshard(folder / "s", folder / "t", **options)
                break
            except Killed:
                assert not (folder / "t").exists() or (folder / "t" / NAME).exists()
    if not (folder / "t").exists():
        reshard(folder / "s", folder / "t", **options)
    assert_holds(folder / "t", keys, table="a")
    assert_holds(folder / "t", keys[:30], table="b")


def die_at(patch: pytest.MonkeyPatch, death: int, torn: bool) -> None:
    """Raise at the n-th append or JSON write; if torn, after writing half the data."""
    left = [death]
    append, write = journal_module.Journal.append, journal_module.write_json

    def counted_append(
        self: object, folder: Path, name: str, data: memoryview, durable: bool
    ) -> None:
        left[0] -= 1
        if left[0] < 0:
            if torn:
                with (folder / name).open("ab") as file:
                    file.write(data[: len(data) // 2])
            raise Killed
        append(self, folder, name, data, durable)  # type: ignore[arg-type]

    def counted_write(path: Path, data: object, *, durable: bool = True) -> None:
        left[0] -= 1
        if left[0] < 0:
            if torn:
                path.with_name(f"{path.name}.tmp").write_text("{")
            raise Killed
        write(path, data, durable=durable)  # type: ignore[arg-type]

    patch.setattr(journal_module.Journal, "append", counted_append)
    patch.setattr(journal_module, "write_json", counted_write)
    patch.setattr(sys.modules["cuda_routing.checkpoints.reshard"], "write_json", counted_write)


def test_really_killed_and_resumed(tmp_path: Path) -> None:
    """When the system kills a process at several moments, a new one can finish its work."""
    keys = some_keys(ROWS)
    save_table(tmp_path / "s", keys, 3, Rule.HASH_ROUNDROBIN)
    code = (
        "from cuda_routing.checkpoints import reshard; print('go', flush=True); "
        f"reshard({str(tmp_path / 's')!r}, {str(tmp_path / 't')!r}, world_size=5, "
        "rule='roundrobin', chunk_rows=1)"
    )
    for pause in (0.02, 0.1, 0.3):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    reshard_again = {"world_size": 5, "rule": "roundrobin", "chunk_rows": 1, "durable": False}
    if not (tmp_path / "t").exists():
        reshard(tmp_path / "s", tmp_path / "t", **reshard_again)
    assert_holds(tmp_path / "t", keys)


def test_killed_between_rename_and_clean_up(tmp_path: Path) -> None:
    """A finished target that still has its journal is cleaned up, not rewritten."""
    save_table(tmp_path / "s", some_keys(20), 2, Rule.ROUNDROBIN)
    unlink = Path.unlink

    def dying(self: Path, missing_ok: bool = False) -> None:
        if self.name == NAME:
            raise Killed
        unlink(self, missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", dying)
        with pytest.raises(Killed):
            reshard(tmp_path / "s", tmp_path / "t", world_size=3)
    assert reshard(tmp_path / "s", tmp_path / "t", world_size=3).rows == {"t": 20}
    assert not (tmp_path / "t" / NAME).exists()
    with pytest.raises(CheckpointError, match="exists already"):
        reshard(tmp_path / "s", tmp_path / "t", world_size=3)


def test_another_task_does_not_continue_an_unfinished_one(tmp_path: Path) -> None:
    """An unfinished folder for another world size is not continued by mistake."""
    save_table(tmp_path / "s", some_keys(50), 2, Rule.ROUNDROBIN)
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, 30, False)
        with pytest.raises(Killed):
            reshard(tmp_path / "s", tmp_path / "t", world_size=3, chunk_rows=5)
    with pytest.raises(CheckpointError, match=r"unfinished re-sharding.*world size"):
        reshard(tmp_path / "s", tmp_path / "t", world_size=4, chunk_rows=5)


def test_foreign_checkpoint_without_dist_type(tmp_path: Path) -> None:
    """dynamicemb's own files have no manifest; a missing dist_type means roundrobin."""
    keys = some_keys(60)
    save_table(tmp_path / "s", keys, 4, Rule.ROUNDROBIN)
    for rank in range(4):
        manifest_path(tmp_path / "s", "t", rank, 4).unlink()
    meta_path(tmp_path / "s", "t").write_text(json.dumps({"evict_strategy": "LRU"}))
    reshard(tmp_path / "s", tmp_path / "t", world_size=3, rule="hash_roundrobin")
    assert_holds(tmp_path / "t", keys)
    assert read_meta(tmp_path / "t", "t").other["evict_strategy"] == "LRU"


def write_compound(folder: Path, keys: np.ndarray, world: int) -> None:
    """Files as dynamicemb writes them under score_strategy (TIMESTAMP, LFU).

    NVIDIA/recsys-examples, ``key_value_table.py`` since PR 437, ``_dump_table``: each array's bytes
    as they are, scores as int64 [n, 2], no manifest; metadata with the optimizer's arguments, the
    eviction strategy and the dist_type.
    """
    folder.mkdir()
    for rank in range(world):
        mine = keys[keys % world == rank]
        arrays = {
            "keys": mine,
            "values": np.stack([mine * 2.0, mine + 0.5], 1).astype(np.float32),
            "scores": scores_of(mine),
            "opt_values": (mine[:, None] * 3.0).astype(np.float32),
        }
        for kind, array in arrays.items():
            data_path(folder, "t", kind, rank, world).write_bytes(array.tobytes())
    meta = {
        "opt_type": "adagrad", "lr": 0.1, "evict_strategy": "EvictStrategy.KLfu",
        "dist_type": "roundrobin",
    }  # fmt: skip
    meta_path(folder, "t").write_text(json.dumps(meta))


def scores_of(keys: np.ndarray) -> np.ndarray:
    """A timestamp in nanoseconds and a frequency for every key, int64 [n, 2]."""
    return np.stack([1_700_000_000_000_000_000 + 17 * keys, keys % 5 + 1], 1)


@pytest.mark.parametrize("rule", list(Rule))
def test_compound_scores_make_the_round_trip(tmp_path: Path, rule: Rule) -> None:
    """Two score words a key go with it to 3 ranks and back to 4, where they are what they were."""
    keys = some_keys(90)
    write_compound(tmp_path / "s", keys, 4)
    assert inspect(tmp_path / "s", "t").row_bytes["scores"] == 16
    reshard(tmp_path / "s", tmp_path / "there", world_size=3, rule=rule, rows=ROWS, durable=False)
    reshard(tmp_path / "there", tmp_path / "back", world_size=4, rule="roundrobin", durable=False)
    for rank in range(4):
        shard = load_shard(tmp_path / "back", "t", rank=rank, world_size=4, rule="roundrobin")
        assert sorted(shard.keys) == sorted(keys[keys % 4 == rank])
        np.testing.assert_array_equal(shard.scores, scores_of(shard.keys).astype(np.uint64))
        np.testing.assert_array_equal(shard.values[:, 0], shard.keys * 2)
        np.testing.assert_array_equal(shard.opt_values[:, 0], shard.keys * 3)
    assert read_meta(tmp_path / "back", "t").other["evict_strategy"] == "EvictStrategy.KLfu"


def test_compound_scores_that_lost_a_word_are_refused(tmp_path: Path) -> None:
    """A file with one and a half words a key, or with one where other ranks have two."""
    write_compound(tmp_path / "s", some_keys(90), 2)
    path = data_path(tmp_path / "s", "t", "scores", 1, 2)
    whole = path.read_bytes()
    for share in (3, 2):
        path.write_bytes(whole[: len(whole) * share // 4])
        with pytest.raises(CheckpointError, match="cut short"):
            reshard(tmp_path / "s", tmp_path / "t", world_size=3)


def test_wrong_dist_type_is_found_and_overridden(tmp_path: Path) -> None:
    """Hashed keys without a dist_type are refused, and read if source_rule is given."""
    keys = some_keys(60)
    save_table(tmp_path / "s", keys, 4, Rule.HASH_ROUNDROBIN)
    path = meta_path(tmp_path / "s", "t")
    data = json.loads(path.read_text())
    del data["dist_type"]
    path.write_text(json.dumps(data))
    with pytest.raises(CheckpointError, match="source_rule"):
        reshard(tmp_path / "s", tmp_path / "t", world_size=2)
    options = {"source_rule": "hash_roundrobin", "rule": "roundrobin"}
    reshard(tmp_path / "s", tmp_path / "t2", world_size=2, **options)
    assert_holds(tmp_path / "t2", keys)


def test_damaged_contents_are_found(tmp_path: Path) -> None:
    """One flipped byte fails the checksum before the target gets its name."""
    save_table(tmp_path / "s", some_keys(60), 2, Rule.ROUNDROBIN)
    path = data_path(tmp_path / "s", "t", "values", 1, 2)
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match=r"values\.rank_1.*checksum"):
        reshard(tmp_path / "s", tmp_path / "t", world_size=3)
    assert not (tmp_path / "t").exists()


def test_memory_stays_small(tmp_path: Path) -> None:
    """No read takes more rows than the limit."""
    save_table(tmp_path / "s", some_keys(200), 1, Rule.ROUNDROBIN)
    sizes = []
    original = np.fromfile

    def watched(*args: object, count: int = -1, **kwargs: object) -> np.ndarray:
        sizes.append(count)
        return original(*args, count=count, **kwargs)  # type: ignore[call-overload, no-any-return]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "fromfile", watched)
        reshard(tmp_path / "s", tmp_path / "t", world_size=3, chunk_rows=16, durable=False)
    assert max(sizes) <= 16 * 12


def test_unknown_table_and_target(tmp_path: Path) -> None:
    """A table that does not exist, and a target that does, are refused."""
    save_table(tmp_path / "s", some_keys(5), 1, Rule.ROUNDROBIN)
    with pytest.raises(CheckpointError, match="no table 'x'; it has t"):
        reshard(tmp_path / "s", tmp_path / "t", world_size=2, tables=["x"])
    (tmp_path / "t").mkdir()
    with pytest.raises(CheckpointError, match="exists already"):
        reshard(tmp_path / "s", tmp_path / "t", world_size=2)
