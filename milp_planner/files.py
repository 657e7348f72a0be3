"""Outputs: values as JSON, files that appear whole or not at all (renamed when written)."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from milp_planner.errors import BadInput


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Replace a file, in a folder that exists, with new content in one step; text becomes UTF-8.

    The content goes to a temporary file in the same folder, is flushed to disk and renamed over
    ``path``: whoever reads, or whatever kills the process, finds the old file or the new one.
    BadInput as :func:`check_writable`.
    """
    target = Path(path)
    write_together({target: content})
    return target


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Replace several files, each as :func:`write_atomically` does, all of them or none.

    All contents are on the disk before the first rename; where a rename fails, what the earlier
    ones replaced is put back.
    """
    check_writable(*contents)
    ready: dict[Path, str] = {}
    replaced: dict[Path, bytes | None] = {}
    try:
        for target, content in contents.items():
            ready[target] = _temporary(target)
            _fill(ready[target], content, _mode_of(target))
        several = len(ready) > 1
        for target, name in ready.items():
            old = target.read_bytes() if several and target.exists() else None
            os.replace(name, target)
            if several:
                replaced[target] = old
    except BaseException as error:
        for name in ready.values():
            with contextlib.suppress(OSError):
                os.unlink(name)
        for done, old in replaced.items():
            _put_back(done, old)
        if isinstance(error, OSError):
            raise BadInput(f"cannot write {target}: {error.strerror}") from None
        raise


def _temporary(target: Path) -> str:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".milp-planner.", suffix=".tmp")
    os.close(handle)
    return name


def _fill(name: str, content: str | bytes, mode: int) -> None:
    with open(name, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(name, mode)


def _put_back(target: Path, old: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if old is None:
            target.unlink()
        else:
            target.write_bytes(old)


class Facts:
    """Base of frozen values (dataclasses) that drawings show and ``--json`` prints."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)  # type: ignore[call-overload]


def write_json(path: str | Path, value: object) -> Path:
    """Write a value as indented JSON with :func:`write_atomically`."""
    return write_atomically(path, json_text(value))


def json_text(value: object) -> str:
    """A value as the JSON that files hold."""
    return json.dumps(value, indent=1) + "\n"


def check_writable(*paths: str | Path | None) -> None:
    """Refuse output paths early, before any work is spent on their content; None stands for no
    path.

    BadInput when one is a folder or a name the system does not take, or its folder is absent or not
    writable.
    """
    for path in paths:
        if path is not None:
            _check_writable(Path(path))


def _check_writable(target: Path) -> None:
    try:
        target.lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"cannot write {target}: {reason}") from None
    if target.is_dir():
        raise BadInput(f"cannot write {target}: it is a folder; give a file name")
    if target.exists() and not target.is_file():
        raise BadInput(f"cannot write {target}: it is not a regular file; --json prints to stdout")
    if not target.parent.is_dir():
        raise BadInput(f"cannot write {target}: the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK):
        raise BadInput(f"cannot write {target}: the folder {target.parent} is not writable")


def check_absent(path: Path, cure: str) -> None:
    """Refuse to overwrite a file that nobody named."""
    if path.exists() or path.is_symlink():
        raise BadInput(f"{path} already exists; {cure}")


def _mode_of(target: Path) -> int:
    """Permissions of the file to replace, else those a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
