"""Outputs appear whole or not at all: written to a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from milp_planner.errors import BadInput


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Replace a file with new content in one step.

    The content goes to a temporary file in the same folder, is flushed to disk and renamed over
    ``path``: whoever reads, or whatever kills the process, finds the old file or the new one.

    Parameters
    ----------
    path
        Its folder must exist.
    content
        Text is written as UTF-8.

    Raises
    ------
    BadInput
        When the folder is absent or not writable, or ``path`` is a folder.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    check_writable(target)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise BadInput(f"cannot write {target}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, _mode_of(target))
        os.replace(name, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise BadInput(f"cannot write {target}: {error.strerror}") from None
        raise
    return target


def write_json(path: str | Path, value: object) -> Path:
    """Write a value as indented JSON with :func:`write_atomically`."""
    return write_atomically(path, json.dumps(value, indent=1) + "\n")


def check_writable(path: str | Path) -> None:
    """Refuse an output path early, before any work is spent on its content.

    Raises
    ------
    BadInput
        When ``path`` is a folder, or its folder is absent or not writable.
    """
    target = Path(path)
    if target.is_dir():
        raise BadInput(f"cannot write {target}: it is a folder; give a file name")
    if target.exists() and not target.is_file():
        raise BadInput(f"cannot write {target}: it is no regular file; --json prints to stdout")
    if not target.parent.is_dir():
        raise BadInput(f"cannot write {target}: the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK):
        raise BadInput(f"cannot write {target}: the folder {target.parent} is not writable")


def _mode_of(target: Path) -> int:
    """Permissions of the file to replace, else those a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
