"""Callers wait for compiled loops as long as they like."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from formulations.runtime.timing import COMPILING
from formulations.search import loops as module
from formulations.search.loops import Loops, loaded


def waiting_for(code: str) -> tuple[Loops, subprocess.Popen[bytes]]:
    """Loops with a process in the compiler's place."""
    loops = Loops(compile_apart=True)
    loops._compiling = subprocess.Popen([sys.executable, "-c", code])
    return loops, loops._compiling


def test_one_that_ends_is_waited_for() -> None:
    """Then the loops are there."""
    loops, compiler = waiting_for("import time; time.sleep(0.2)")
    assert loops.ready(lambda: False) and compiler.returncode == 0 and loaded()


def test_one_that_does_not_end_is_left_when_it_is_over() -> None:
    """The answer is no, and closing ends it."""
    loops, compiler = waiting_for("import time; time.sleep(600)")
    asked: list[int] = []
    assert not loops.ready(lambda: asked.append(1) is not None or len(asked) >= 3)
    assert len(asked) == 3
    loops.close()
    assert compiler.returncode != 0


def test_a_large_search_waits_for_the_compiler_first() -> None:
    """Until it ends, or until it is over."""
    loops, compiler = waiting_for("import time; time.sleep(0.2)")
    loops.compiled(lambda: False)
    assert compiler.returncode == 0
    loops, compiler = waiting_for("import time; time.sleep(600)")
    loops.compiled(lambda: True)
    assert compiler.poll() is None
    loops.close()


def test_the_working_folder_does_not_stand_in_for_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a clone, where the package is installed elsewhere, the installed loops are compiled."""
    (tmp_path / "formulations").mkdir()
    (tmp_path / "formulations" / "__init__.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "mark", lambda: tmp_path / "nothing is cached")
    loops = Loops(compile_apart=True)
    loops.prepare()
    compiler = loops._compiling
    assert compiler is not None and compiler.wait() == 0


def test_what_is_cached_is_loaded_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the mark stands, nothing is compiled in another process."""
    complete = tmp_path / "complete"
    complete.touch()
    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "mark", lambda: complete)
    loops = Loops(compile_apart=True)
    loops.prepare()
    assert loops._compiling is None and loops._loading is not None
    assert loops.ready(lambda: False) and hasattr(sys.modules[module._LOOPS], "tidy")


def test_seconds_are_those_of_the_compiler() -> None:
    """They stand still once it has ended."""
    before, began = COMPILING.seconds, time.perf_counter()
    module._timed(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"]))
    told, passed = COMPILING.seconds - before, time.perf_counter() - began
    assert 0.2 <= told <= passed
    assert COMPILING.seconds - before == told


def test_one_compiler_serves_all_workers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every worker prepares the loops; only the first starts anything, and announces it."""
    begun, loops = list[int](), Loops(compile_apart=True)
    of = subprocess.Popen

    def noted(*_: object, **__: object) -> object:
        begun.append(1)
        return of([sys.executable, "-c", "pass"])

    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "mark", lambda: None)
    monkeypatch.setattr(subprocess, "Popen", noted)
    loops.prepare()
    assert caplog.messages == [module.ANNOUNCED]
    for _ in range(2):
        loops.prepare()
    loops.close()
    assert begun == [1] and caplog.messages == [module.ANNOUNCED]
