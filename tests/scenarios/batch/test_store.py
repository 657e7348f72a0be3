"""Results on disk: whatever the last write left behind, every whole record survives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from scenarios.batch.store import FILE, Store, latest, read_records


def test_every_cut_keeps_the_whole_lines(tmp_path: Path) -> None:
    """A kill may leave any part of the last record; it is dropped, and writing continues."""
    with Store(tmp_path) as store:
        store.append({"key": "a", "n": 1})
        store.append({"key": "b", "n": 2})
    whole = (tmp_path / FILE).read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole) + 1):
        (tmp_path / FILE).write_bytes(whole[:size])
        kept = {"a"} if first <= size < len(whole) else {"a", "b"} if size == len(whole) else set()
        assert set(latest(tmp_path)) == kept
        with Store(tmp_path) as store:
            store.append({"key": "c"})
        assert set(latest(tmp_path)) == kept | {"c"}


def test_the_newest_record_wins(tmp_path: Path) -> None:
    """A scenario that failed and was solved later counts as solved."""
    with Store(tmp_path) as store:
        store.append({"key": "a", "n": 1})
        store.append({"key": "a", "n": 2})
        assert store.latest()["a"]["n"] == 2
    assert [record["n"] for record in read_records(tmp_path)] == [1, 2]


def test_a_long_torn_line(tmp_path: Path) -> None:
    """The end of the last whole line is found however far back it is."""
    whole = b'{"key":"a"}\n'
    (tmp_path / FILE).write_bytes(whole + b"x" * 200_000)
    with Store(tmp_path):
        pass
    assert (tmp_path / FILE).read_bytes() == whole


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    """A limit on file size stands for a full disk: earlier records stay, and a later call
    continues."""
    code = (
        "import resource, sys; from scenarios.batch.store import Store\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for n in range(9): store.append({'key': str(n), 'x': 'y' * 20})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "BadInput: cannot write" in done.stderr and "earlier results are kept" in done.stderr
    kept = set(latest(tmp_path))
    assert kept == {"0", "1"}
    with Store(tmp_path) as store:
        store.append({"key": "more"})
    assert set(latest(tmp_path)) == kept | {"more"}


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """A broken line in the middle is not from a crash of ours, so nothing is guessed."""
    (tmp_path / FILE).write_bytes(b'{"key":"a"}\nnonsense\n{"key":"b"}\n')
    with pytest.raises(BadInput, match=r"results\.jsonl:2"):
        latest(tmp_path)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """Two batches in one folder would solve everything twice."""
    with Store(tmp_path), pytest.raises(BadInput, match="another batch"):
        Store(tmp_path)
    with Store(tmp_path):
        pass


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """If a file has the folder's name, a sentence says so."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write"):
        Store(tmp_path / "file")
