"""How the loops are compiled, and where the compiled code is kept.

``a`` holds everything in one int64 array (:mod:`formulations.search.anneal_data`: ``a[NAME]`` is
a number, or the beginning of a section), and ``w`` the weight of a unit of excess at every place.
Few arguments keep calls cheap and compilation short. Every function releases the GIL.

Numba's cache does not notice that a function called in another file has changed. So the compiled
code is kept in a folder named after a hash of all these files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import config, njit, types

from formulations.search.kept import loops_folder

_INTS = types.CPointer(types.int64)
_TYPES = {
    "a": _INTS, "w": types.CPointer(types.float64), "order": _INTS,
    "choice_start": _INTS, "choice": _INTS, "preferences": _INTS, "room": _INTS,
    "heat": types.float64, "change": types.float64, "share": types.float64,
    "span": types.UniTuple(types.int64, 3), "heats": types.UniTuple(types.float64, 2),
    "ladder": types.CPointer(types.float64), "left": types.CPointer(types.float64), "slot": _INTS,
    "mix": types.UniTuple(types.int64, 7), "limits": types.UniTuple(types.float64, 2),
}  # fmt: skip


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that other loops call, for one signature.

    The name of an argument determines its type (int64 unless listed). The function is compiled
    when an entry that is not in the cache calls it; an entry's cached code contains the functions
    it calls. With types inferred from calls, Numba would compile most functions several times.
    Arrays are passed as pointers, because an array costs seven arguments and four atomic updates of
    reference counts at every call.
    """
    signature = tuple(_TYPES.get(name, types.int64) for name in _names(function))
    lazy = njit(nogil=True)(function)
    compiled = lazy.compile
    lazy.compile = lambda _: compiled(signature)
    return lazy


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls; it takes arrays."""
    kinds = (_TYPES.get(name, types.int64) for name in _names(function))
    arrays = tuple(k.dtype[::1] if isinstance(k, types.CPointer) else k for k in kinds)
    with _kept():
        return njit(arrays, cache=True, nogil=True)(function)


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


_FOLDER = loops_folder()


@contextmanager
def _kept() -> Iterator[None]:
    """Set Numba's cache folder to ours while one of our loops is compiled."""
    before = config.CACHE_DIR
    if _FOLDER is not None:
        config.CACHE_DIR = str(_FOLDER)
    try:
        yield
    finally:
        config.CACHE_DIR = before
