"""The compiled loops: there, or being compiled in a process of their own, once on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module

from formulations.cpsat import POLL

_LOOPS = "formulations.search.kernels"


def loaded() -> bool:
    """Whether the loops can run at once."""
    return hasattr(sys.modules.get(_LOOPS), "tidy")


class Loops:
    """The loops for one search.

    Compiled here, they would hold up every Python thread; later they are read from Numba's cache
    in a second.

    Parameters
    ----------
    compile_apart : bool
        In another process, for whoever watches the clock; else where they are first used.
    """

    def __init__(self, compile_apart: bool) -> None:
        self._lock, self._apart = threading.Lock(), compile_apart
        self._compiling: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Start compiling unless they are there."""
        if loaded() or not self._apart:
            return
        # -P: this package, not one of the same name in the working folder, as in a clone
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        self._compiling = subprocess.Popen(
            [sys.executable, "-P", "-c", f"import {_LOOPS}"], env=path, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def compiling(self) -> bool:
        """Whether someone is still at it."""
        compiler = self._compiling
        return compiler is not None and compiler.poll() is None

    def ready(self, over: Callable[[], bool]) -> bool:
        """Wait for them until it is over; whether they are there."""
        with self._lock:
            compiling = self._compiling
            while compiling is not None and compiling.poll() is None and not over():
                time.sleep(POLL)
            if compiling is not None and (compiling.poll() is None or over()):
                return False  # nothing is compiled here once it is over
            self._compiling = None
            import_module(_LOOPS)
        return True

    def close(self) -> None:
        """End a compiler that is still at work; what it has compiled is kept for the next solve."""
        if self._compiling is not None and self._compiling.poll() is None:
            self._compiling.terminate()
            self._compiling.wait()


def waited_for(over: Callable[[], bool]) -> bool:
    """Have the loops loaded or compiled, until it is over; whether they are there."""
    loops = Loops(compile_apart=True)
    loops.prepare()
    try:
        return loops.ready(over)
    finally:
        loops.close()


if __name__ == "__main__":  # compiled ahead, for an image or a fresh machine
    import_module(_LOOPS)
