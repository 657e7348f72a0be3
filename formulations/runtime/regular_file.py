"""Read a regular file or standard input, never another device or pipe, up to a limit."""

from __future__ import annotations

import errno
import os
import stat
from functools import cache
from pathlib import Path

STANDARD_INPUT = "-"
"""The path that stands for standard input."""
_MOST = 2**28
"""The most bytes of it that are read."""


def read_regular(path: Path, limit: int) -> bytes:
    """All bytes of a regular file, or of standard input for the path ``-``.

    A pipe without a writer would block its reader, and a device such as /dev/zero never ends.
    Standard input is what the user named; it is read once, and is the same when read again.

    Parameters
    ----------
    path : Path
    limit : int
        The most bytes that are read.

    Raises
    ------
    OSError
        When it is absent, unreadable, not a regular file, or larger than ``limit``; its
        ``strerror`` is meant for people.
    ValueError
        When the name holds a NUL character.
    """
    if str(path) == STANDARD_INPUT:
        return _within(_standard_input(), limit, path)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "is not a regular file; - reads standard input", str(path))
        with open(handle, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    finally:
        os.close(handle)
    return _within(data, limit, path)


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of a regular file or of standard input; OSError if it cannot be read."""
    if str(path) == STANDARD_INPUT:
        return _standard_input()[:count]
    if not path.is_file():
        return b""
    with path.open("rb") as stream:
        return stream.read(count)


@cache
def _standard_input() -> bytes:
    with open(0, "rb", closefd=False) as stream:
        return stream.read(_MOST + 1)


def _within(data: bytes, limit: int, path: Path) -> bytes:
    if len(data) > limit:
        sentence = f"larger than {limit >> 20} MiB, the most that is read"
        raise OSError(errno.EFBIG, sentence, str(path))
    return data
