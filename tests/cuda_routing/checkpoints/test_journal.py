"""The journal: which bytes it cuts off and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_routing.checkpoints.journal import Journal, resume
from cuda_routing.errors import CheckpointError


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
