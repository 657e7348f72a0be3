"""Reading text files with sentences instead of tracebacks."""

from __future__ import annotations

import contextlib
from pathlib import Path

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import nearest

MAX_BYTES = 64 * 2**20
"""Largest input file that is read."""


def read_text(path: Path) -> str:
    """The UTF-8 text of a file.

    Raises
    ------
    BadInput
        When it is missing (with the nearest name beside it), a folder, unreadable, too large or
        not UTF-8.
    """
    try:
        with path.open("rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file{_neighbour(path)}") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; allowed: a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise BadInput(f"{path}: larger than {MAX_BYTES >> 20} MiB, the most that is read")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None


def _neighbour(path: Path) -> str:
    with contextlib.suppress(OSError):
        close = nearest(path.name, sorted(each.name for each in path.parent.iterdir()))
        return f"; did you mean {path.parent / close}?" if close else ""
    return ""
