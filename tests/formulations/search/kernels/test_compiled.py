"""What is compiled is kept for the text of all loops, and Numba's own settings are left alone."""

from __future__ import annotations

from pathlib import Path

from numba import config

from formulations.search.kernels import compiled


def test_another_text_is_compiled_anew_and_the_old_goes(tmp_path: Path) -> None:
    """A change in any file changes the folder; what was there for the old text is removed."""
    one, two, kept = tmp_path / "one.py", tmp_path / "two.py", tmp_path / "kept"
    one.write_text("a = 1\n")
    two.write_text("b = 1\n")
    before = compiled.folder_for([one, two], kept)
    (before / "deep").mkdir(parents=True)
    (kept / "other").mkdir()
    assert compiled.folder_for([one, two], kept) == before
    assert before.exists()
    two.write_text("b = 2\n")
    assert compiled.folder_for([one, two], kept) != before
    assert [path.name for path in kept.iterdir()] == ["other"]


def test_loops_are_kept_in_the_folder_and_nothing_else_is() -> None:
    """Compiled loops lie there once they are loaded; Numba's setting is as it was."""
    folder = compiled._FOLDER
    assert folder is None or any(folder.rglob("annealing.*.nbi"))
    assert folder is None or str(folder) != config.CACHE_DIR
