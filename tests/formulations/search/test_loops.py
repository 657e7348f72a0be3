"""Compiled loops are waited for as long as one likes."""

from __future__ import annotations

import subprocess
import sys

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
