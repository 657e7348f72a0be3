"""Reading files: every failure is a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import strict_yaml
from milp_planner.inputs.strict_yaml import read_text


def test_text_is_read(tmp_path: Path) -> None:
    """UTF-8 text is returned as written."""
    path = tmp_path / "a.yaml"
    path.write_bytes("größe: 1\n".encode())
    assert read_text(path) == "größe: 1\n"


def test_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    """The error for a missing file gives the nearest name in the folder."""
    (tmp_path / "cluster.yaml").touch()
    with pytest.raises(
        BadInput, match=r"clutser\.yaml: no such file; did you mean .*cluster\.yaml"
    ):
        read_text(tmp_path / "clutser.yaml")
    with pytest.raises(BadInput, match=r"no such file$"):
        read_text(tmp_path / "nowhere" / "clutser.yaml")


def test_folder(tmp_path: Path) -> None:
    """A folder is not a file."""
    with pytest.raises(BadInput, match="is a folder; allowed: a file"):
        read_text(tmp_path)


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_only_regular_files_are_read(tmp_path: Path, name: str) -> None:
    """A pipe nobody writes would block, and a device never ends."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="cannot be read: is not a regular file"):
        read_text(tmp_path / name)


def test_not_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are reported with their line."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(BadInput, match=r"a\.yaml:2: not UTF-8 text \(byte 8\)"):
        read_text(path)


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the limit is refused before it is parsed."""
    monkeypatch.setattr(strict_yaml, "MAX_BYTES", 2**20)
    path = tmp_path / "a.yaml"
    path.write_bytes(b" " * 2**20)
    assert len(read_text(path)) == 2**20
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(BadInput, match="larger than 1 MiB"):
        read_text(path)


def test_impossible_name() -> None:
    """A name that the system cannot take gets a sentence, too."""
    with pytest.raises(BadInput, match="cannot be read"):
        read_text(Path("a\0b"))
