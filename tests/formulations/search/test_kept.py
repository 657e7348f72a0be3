"""Compiled loops are cached under the text of all loops; Numba's own settings stay untouched."""

from __future__ import annotations

from pathlib import Path

import pytest
from numba import config

from formulations.search import kept as module
from formulations.search import loops
from formulations.search.kernels import compiled


def test_another_text_is_compiled_anew_and_the_old_goes(tmp_path: Path) -> None:
    """A change in any file changes the folder; what was there for the old text is removed."""
    one, two, kept = tmp_path / "one.py", tmp_path / "two.py", tmp_path / "kept"
    one.write_text("a = 1\n")
    two.write_text("b = 1\n")
    before = module.folder_for([one, two], kept)
    (before / "deep").mkdir(parents=True)
    (kept / "other").mkdir()
    assert module.folder_for([one, two], kept) == before
    assert before.exists()
    two.write_text("b = 2\n")
    assert module.folder_for([one, two], kept) != before
    assert [path.name for path in kept.iterdir()] == ["other"]


def test_loops_are_kept_in_the_folder_and_nothing_else_is() -> None:
    """Compiled loops lie there once they are loaded; Numba's setting is as it was."""
    folder = compiled._FOLDER
    assert folder is None or any(folder.rglob("annealing.*.nbi"))
    assert folder is None or str(folder) != config.CACHE_DIR


def test_loaded_loops_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark lies in their folder, and another Numba has another one."""
    loops.load()
    complete = module.mark()
    assert complete is None or (complete.is_file() and complete.parent == module.loops_folder())
    monkeypatch.setattr(module, "version", lambda name: "0.1")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    other = module.mark()
    assert other is not None and not other.exists() and tmp_path in other.parents
