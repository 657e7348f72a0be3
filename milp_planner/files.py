"""Outputs: values as JSON, files that appear whole or not at all (renamed when written).

No output replaces a file of another kind, or an input of the command that is running.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from milp_planner.errors import BadInput


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Replace a file, in a folder that exists, with new content in one step; text becomes UTF-8.

    The content goes to a temporary file in the same folder, is flushed to disk and renamed over
    ``path``: whoever reads, or whatever kills the process, finds the old file or the new one.
    BadInput as :func:`check_writable`, and for a file of another kind than the content.
    """
    target = Path(path)
    write_together({target: content})
    return target


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Replace several files, each as :func:`write_atomically` does, all of them or none.

    All contents are on the disk before the first rename; where a rename fails, what the earlier
    ones replaced is put back.
    """
    for target, content in contents.items():
        _check_writable(target)
        _check_replaced(target, content.encode() if isinstance(content, str) else content)
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


def check_writable(*paths: str | Path | None, kind: str = "") -> None:
    """Refuse output paths early, before any work is spent on their content; None stands for no
    path.

    BadInput when one is a folder or a name the system does not take, its folder is absent or not
    writable, or a file is there that is an input of this command, or not of the ``kind`` that
    :func:`kind_of` tells.
    """
    for path in paths:
        if path is not None:
            _check_writable(Path(path))
            _refuse_input(Path(path))
            _refuse_other(Path(path), kind)


#: Files that the running command reads.
_inputs: tuple[Path, ...] = ()


@contextlib.contextmanager
def keeping(inputs: Iterable[Path]) -> Iterator[None]:
    """Until the end, no output replaces one of these files."""
    global _inputs
    before, _inputs = _inputs, tuple(path for path in inputs if path.is_file())
    try:
        yield
    finally:
        _inputs = before


#: The first of these keys that a text has on a line of its own tells its kind.
_KEYS = {
    "stopped_by": "outcome", "tables": "model", "models": "suite", "pairs": "suite",
    "host_link": "profile", "machines": "cluster",
}  # fmt: skip
_BEGINNING = 2**16


def kind_of(content: bytes) -> str:
    """What a file is, by its beginning; empty for an empty file.

    The stated format of a JSON document without version (``plan``), else ``page``, ``picture``,
    ``model``, ``cluster``, ``suite``, ``profile``, ``outcome``, ``CSV``, ``JSON``, ``export`` (a
    text that names milp-planner at its beginning), ``binary`` or ``text``.
    """
    if content.startswith((b"\x89PNG", b"%PDF", b"<?xml", b"<svg")):
        return "picture"
    if b"\0" in content[:_BEGINNING]:
        return "binary"
    text = content[:_BEGINNING].decode("utf-8", "replace").strip("\ufeff \r\n\t")
    if text[:1] == "<":
        return "page"
    is_json = text[:1] in ("{", "[")
    stated = re.search(r'"format"\s*:\s*"(?:milp-planner-)?([^"/]+)', text[:500])
    if is_json and stated is not None:
        return stated[1]
    keys = re.findall(r'(?m)^[{ ]{0,2}"?(\w+)"?\s*:', text)
    for key, kind in _KEYS.items():
        if key in keys:
            return kind
    if is_json:
        return "JSON"
    first = text.partition("\n")[0]
    if "," in first and ":" not in first and "milp-planner" not in first:
        return "CSV"
    return "" if not text else "export" if "milp-planner" in text[:500] else "text"


def _check_replaced(target: Path, content: bytes) -> None:
    """Refuse to replace an input, or a file of another kind."""
    if target.is_file() and target.read_bytes() != content:
        _refuse_input(target)
        _refuse_other(target, kind_of(content))


def _refuse_input(target: Path) -> None:
    if target.exists() and any(target.samefile(path) for path in _inputs if path.exists()):
        raise BadInput(f"cannot write {target}: it is an input of this command; name another file")


def _refuse_other(target: Path, kind: str) -> None:
    if not kind or not target.is_file():
        return
    with target.open("rb") as stream:
        found = kind_of(stream.read(_BEGINNING))
    if found not in ("", kind):
        raise BadInput(
            f"cannot write {target}: it holds another kind of file ({found}, not {kind}); name "
            "another file, or move it away"
        )


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
