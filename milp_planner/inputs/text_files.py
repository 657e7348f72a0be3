"""Reading text files with sentences instead of tracebacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from formulations.regular_file import read_regular
from milp_planner.errors import BadInput
from milp_planner.inputs.problems import nearest

MAX_BYTES = 64 * 2**20
"""Largest input file that is read."""


def neighbour(path: Path) -> str | None:
    """The file in the same folder whose name is nearest."""
    with contextlib.suppress(OSError):
        close = nearest(path.name, sorted(each.name for each in path.parent.iterdir()))
        return str(path.parent / close) if close else None
    return None


def read_text(path: Path, alike: Callable[[Path], str | None] = neighbour) -> str:
    """The UTF-8 text of a file; ``alike`` finds what may have been meant by a missing one.

    Raises
    ------
    BadInput
        When it is missing (with the nearest name in its folder), a folder, a pipe or device,
        unreadable, too large or not UTF-8.
    """
    try:
        raw = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        close = alike(path)
        hint = f"; did you mean {close}?" if close else ""
        raise BadInput(f"{path}: no such file{hint}") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; allowed: a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: not UTF-8 text (byte {error.start})") from None
