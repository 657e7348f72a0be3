"""Load the compiled loops, or compile them in a separate process, once per machine."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module

from formulations.cpsat import POLL
from formulations.runtime.timing import COMPILING
from formulations.search.kept import mark, used

_LOOPS = "formulations.search.kernels"

ANNOUNCED = (
    "compiling the search, once on this machine, which takes up to two minutes that no time limit "
    "counts"
)

_SAID = threading.Event()

logger = logging.getLogger(__name__)


def loaded() -> bool:
    """Whether the loops are loaded and can run at once."""
    return hasattr(sys.modules.get(_LOOPS), "tidy")


def load() -> None:
    """Load the loops from the cache, or compile them, and mark the cache as complete."""
    import_module(_LOOPS)
    complete = mark()
    if complete is not None:
        used(complete)


class Loops:
    """The loops for one search.

    Compiling them in this process would block every Python thread. Once compiled, they load from
    Numba's cache in a second.

    Parameters
    ----------
    compile_apart : bool
        Compile in another process, for callers with a time limit; else on first use.
    """

    def __init__(self, compile_apart: bool) -> None:
        self._lock, self._apart = threading.Lock(), compile_apart
        self._compiling: subprocess.Popen[bytes] | None = None
        self._loading: threading.Thread | None = None

    def prepare(self) -> None:
        """Start loading the loops from the cache, or compiling them; once, whoever asks."""
        with self._lock:
            if not (loaded() or not self._apart or self._loading or self._compiling):
                self._begin()

    @property
    def missing(self) -> bool:
        """Whether another process would have to compile them."""
        return self._apart and not loaded() and not _cached()

    def compiled(self, over: Callable[[], bool]) -> None:
        """Wait until another process has compiled them, or ``over`` returns True."""
        self.prepare()
        while self.compiling() and not over():
            time.sleep(POLL)

    def _begin(self) -> None:
        if _cached():
            self._loading = threading.Thread(target=load, daemon=True)
            self._loading.start()
            return
        if not _SAID.is_set():  # a later solve of this process goes on with what was compiled
            _SAID.set()
            logger.warning(ANNOUNCED)
        # -P: run this package, not one of the same name in the working folder, such as a clone
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        self._compiling = compiler = subprocess.Popen(
            [sys.executable, "-P", "-m", "formulations.search.loops"], env=path, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        threading.Thread(target=_timed, args=(compiler,), daemon=True).start()

    def compiling(self) -> bool:
        """Whether the loops are still being compiled or loaded."""
        compiler, loader = self._compiling, self._loading
        if compiler is not None and compiler.poll() is None:
            return True
        return loader is not None and loader.is_alive()

    def ready(self, over: Callable[[], bool]) -> bool:
        """Wait for the loops until ``over`` returns True; returns whether they are loaded."""
        with self._lock:
            prepared = self._compiling is not None or self._loading is not None
            while self.compiling() and not over():
                time.sleep(POLL)
            if prepared and (self.compiling() or over()):
                return False  # too late to compile them in this process
            self._compiling = self._loading = None
            load()
        return True

    def close(self) -> None:
        """Stop a compiler that is still running; the next solve can use what it has compiled.

        Wait for loading to end, because Python aborts if it exits while a thread is in Numba's
        libraries.
        """
        if self._loading is not None:
            self._loading.join()
        if self._compiling is not None and self._compiling.poll() is None:
            self._compiling.terminate()
            self._compiling.wait()


def _cached() -> bool:
    complete = mark()
    return complete is not None and complete.exists()


def _timed(compiler: subprocess.Popen[bytes]) -> None:
    with COMPILING:
        compiler.wait()


def waited_for(over: Callable[[], bool]) -> bool:
    """Load or compile the loops until ``over`` returns True; returns whether they are loaded."""
    loops = Loops(compile_apart=True)
    loops.prepare()
    try:
        return loops.ready(over)
    finally:
        loops.close()


if __name__ == "__main__":  # compile ahead, for an image or a fresh machine
    load()
