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
from formulations.search.kept import mark

_LOOPS = "formulations.search.kernels"


def loaded() -> bool:
    """Whether the loops can run at once."""
    return hasattr(sys.modules.get(_LOOPS), "tidy")


def load() -> None:
    """Load them from the cache, or compile them, and mark that they are in it."""
    import_module(_LOOPS)
    complete = mark()
    if complete is not None and complete.parent.is_dir():  # not where Numba compiles nothing
        complete.touch()


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
        self._loading: threading.Thread | None = None

    def prepare(self) -> None:
        """Start loading them from the cache, or compiling."""
        if loaded() or not self._apart:
            return
        complete = mark()
        if complete is not None and complete.exists():
            self._loading = threading.Thread(target=load, daemon=True)
            self._loading.start()
            return
        # -P: this package, not one of the same name in the working folder, as in a clone
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        self._compiling = subprocess.Popen(
            [sys.executable, "-P", "-m", "formulations.search.loops"], env=path, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def compiling(self) -> bool:
        """Whether someone is still at it."""
        compiler, loader = self._compiling, self._loading
        return (compiler is not None and compiler.poll() is None) or (
            loader is not None and loader.is_alive()
        )

    def ready(self, over: Callable[[], bool]) -> bool:
        """Wait for them until it is over; whether they are there."""
        with self._lock:
            prepared = self._compiling is not None or self._loading is not None
            while self.compiling() and not over():
                time.sleep(POLL)
            if prepared and (self.compiling() or over()):
                return False  # nothing is compiled here once it is over
            self._compiling = self._loading = None
            load()
        return True

    def close(self) -> None:
        """End a compiler that is still at work; what it has compiled is kept for the next solve.

        Loading is waited for: a thread that is in Numba's libraries when Python ends aborts it.
        """
        if self._loading is not None:
            self._loading.join()
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
    load()
