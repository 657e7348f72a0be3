"""Compiled loops are cached under the text of all loops; Numba's own settings stay untouched."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from numba import config

from formulations.search import kept as module
from formulations.search import loops
from formulations.search.kernels import compiled


def test_another_text_place_or_time_is_compiled_anew(tmp_path: Path) -> None:
    """A change in any file changes the folder, and so does the same text elsewhere or later."""
    one, two, kept = tmp_path / "one.py", tmp_path / "two.py", tmp_path / "kept"
    one.write_text("a = 1\n")
    two.write_text("b = 1\n")
    before = module.folder_for([one, two], kept)
    assert module.folder_for([one, two], kept) == before and before.parent == kept
    os.utime(two, (1, 1))
    later = module.folder_for([one, two], kept)
    two.write_text("b = 2\n")
    os.utime(two, (1, 1))
    other = module.folder_for([one, two], kept)
    elsewhere = shutil.copy2(two, tmp_path / "three.py")
    assert len({before, later, other, module.folder_for([one, Path(elsewhere)], kept)}) == 4


def test_only_folders_that_nobody_uses_go(tmp_path: Path) -> None:
    """Another version may still be in use; what is no folder of loops stays in any case."""
    for name, days in (("loops-own", 100), ("loops-other", 1), ("loops-old", 100), ("plans", 100)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - 86_400 * days,) * 2)
    module.used(tmp_path / "loops-own" / "complete")
    assert {path.name for path in tmp_path.iterdir()} == {"loops-own", "loops-other", "plans"}
    assert time.time() - (tmp_path / "loops-own").stat().st_mtime < 1000


def test_nothing_is_kept_beside_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops go to the user's cache folder, or where the caller wants Numba's; without a place that
    can be written, Numba chooses."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = module.loops_folder()
    assert folder is not None and folder.parent == tmp_path / "milp-planner"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    chosen = module.loops_folder()
    assert chosen is not None and chosen.parent == tmp_path / "chosen"
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert module.loops_folder() is None and module.mark() is None


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
