"""Outputs appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from milp_planner import files
from milp_planner.errors import BadInput


def test_content_replaces_the_old_file(tmp_path: Path) -> None:
    """The file has the new content, and no temporary file is left."""
    target = tmp_path / "plan.json"
    target.write_text("old")
    files.write_atomically(target, "new é")
    assert target.read_text(encoding="utf-8") == "new é"
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("count", [1, 3])
def test_files_appear_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException, count: int
) -> None:
    """If the last write or rename fails, the folder is as it was before the first."""
    (tmp_path / "old").write_text("before")
    texts = {tmp_path / "old": "after", tmp_path / "new": "x", tmp_path / "last": "y"}
    targets = dict([*texts.items()][:count])
    original, calls = getattr(os, call), []

    def stop(*given: object) -> None:
        calls.append(given)
        if len(calls) == count:
            raise error
        original(*given)

    said = "No space left|^$"
    with monkeypatch.context() as patched, pytest.raises((BadInput, KeyboardInterrupt), match=said):
        patched.setattr(os, call, stop)
        files.write_together(targets)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"old": "before"}
    files.write_together(targets)
    assert {p: p.read_text() for p in tmp_path.iterdir()} == targets


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    """A new file obeys the umask; a replaced one keeps its permissions."""
    plain = tmp_path / "plain"
    plain.write_text("")
    made = files.write_atomically(tmp_path / "made", "x")
    assert stat.S_IMODE(made.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    plain.chmod(0o640)
    files.write_atomically(plain, "x")
    assert stat.S_IMODE(plain.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("absent/plan.json", "does not exist"), (".", "is a folder"), ("pipe", "not a regular file")],
)
def test_hopeless_paths_are_refused_early(tmp_path: Path, name: str, sentence: str) -> None:
    """A path that cannot be written is refused before any work is done."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match=sentence):
        files.check_writable(tmp_path / name)


def test_kinds_of_what_ships_and_of_what_is_written() -> None:
    """Every shipped input is told for what it is, and an empty file may become anything."""
    homes = {
        "model": "scenarios/models", "cluster": "scenarios/clusters", "suite": "scenarios/suites",
        "profile": "milp_planner/pricing/profiles",
    }  # fmt: skip
    root = Path(files.__file__).parents[1]
    for kind, folder in homes.items():
        found = [*(root / folder).glob("*.yaml")]
        assert found and {files.kind_of(path.read_bytes()) for path in found} == {kind}
    written = {
        b'{\n "format": "milp-planner-plan/1",': "plan", b"<!doctype html>": "page",
        b"table,rows\n": "CSV", b"EMB_PLACEMENT=hbm\n": "text", b"[]": "JSON", b" \n": "",
    }  # fmt: skip
    assert {text: files.kind_of(text) for text in written} == written


def test_nothing_replaces_another_kind_of_file_or_an_input(tmp_path: Path) -> None:
    """The same kind is replaced, an input only outside its command, and with what it holds."""
    target = tmp_path / "a"
    target.write_text("tables: []\n")
    with pytest.raises(BadInput, match=r"another kind of file \(model, not JSON\)"):
        files.write_json(target, {"a": 1})
    files.write_atomically(target, "tables: [1]\n")
    (tmp_path / "b").symlink_to(target)
    with files.keeping([target]):
        files.write_atomically(target, "tables: [1]\n")
        for path in (target, tmp_path / "b"):
            with pytest.raises(BadInput, match="it is an input of this command"):
                files.write_atomically(path, "tables: []\n")
            with pytest.raises(BadInput, match="it is an input of this command"):
                files.check_writable(path, kind="model")
    assert target.read_text() == "tables: [1]\n"
    files.write_atomically(target, "tables: []\n")
