"""How the loops are compiled, and where what is compiled is kept.

``a`` holds everything in one int64 array (:mod:`formulations.search.anneal_data`: ``a[NAME]`` is
a number, or where a section begins), ``w`` what a unit of excess weighs at every place: with few
arguments, calls stay cheap and compiling stays short. Every function releases the GIL.

Numba's cache of a file does not see that what it calls in another has changed. So what is compiled
is kept in a folder that is named after the text of all files of loops.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit, types

_INTS = types.CPointer(types.int64)
_TYPES = {
    "a": _INTS, "w": types.CPointer(types.float64), "order": _INTS,
    "choice_start": _INTS, "choice": _INTS, "preferences": _INTS, "room": _INTS,
    "heat": types.float64, "change": types.float64, "share": types.float64,
    "span": types.UniTuple(types.int64, 3), "heats": types.UniTuple(types.float64, 2),
    "ladder": types.CPointer(types.float64), "left": types.CPointer(types.float64), "slot": _INTS,
    "mix": types.UniTuple(types.int64, 8), "limits": types.UniTuple(types.float64, 2),
}  # fmt: skip


def kernel(function: Callable[..., Any]) -> Any:
    """Compile for the types that go with the names of arguments (int64: any other name).

    Once a function: left to the types it is called with, most would be compiled several times.
    Arrays are pointers: an array costs seven arguments and four atomic counts of references at
    every call.
    """
    return _compiled(function, [_TYPES.get(name, types.int64) for name in _names(function)])


def entry(function: Callable[..., Any]) -> Any:
    """Compile what Python calls: with arrays."""
    kinds = [_TYPES.get(name, types.int64) for name in _names(function)]
    return _compiled(
        function, [k.dtype[::1] if isinstance(k, types.CPointer) else k for k in kinds]
    )


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _compiled(function: Callable[..., Any], kinds: list[Any]) -> Any:
    with _kept():
        return njit(tuple(kinds), cache=True, nogil=True)(function)


def folder_for(sources: Iterable[Path], kept: Path) -> Path:
    """A folder in ``kept`` for what is compiled from these files; those for other texts go."""
    text = b"".join(source.read_bytes() for source in sources)
    folder = kept / f"loops-{sha256(text).hexdigest()[:16]}"
    for old in kept.glob("loops-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def _folder() -> Path | None:
    """Ours; None where nothing may be written here, and Numba finds another place."""
    here = Path(__file__).parent
    if not (config.CACHE_DIR or os.access(here, os.W_OK)):
        return None
    kept = Path(config.CACHE_DIR or here / "__pycache__")
    return folder_for([*sorted(here.glob("*.py")), here.parent / "anneal_data.py"], kept)


_FOLDER = _folder()


@contextmanager
def _kept() -> Iterator[None]:
    """Numba's folder is ours while a loop of ours is compiled."""
    before = config.CACHE_DIR
    if _FOLDER is not None:
        config.CACHE_DIR = str(_FOLDER)
    try:
        yield
    finally:
        config.CACHE_DIR = before
