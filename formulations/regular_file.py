"""Read a regular file, never a device, pipe or socket, and never more than a limit."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, limit: int) -> bytes:
    """All bytes of a regular file.

    A pipe without a writer would block its reader, and a device such as /dev/zero never ends.

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
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        with open(handle, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    finally:
        os.close(handle)
    if len(data) > limit:
        sentence = f"larger than {limit >> 20} MiB, the most that is read"
        raise OSError(errno.EFBIG, sentence, str(path))
    return data
