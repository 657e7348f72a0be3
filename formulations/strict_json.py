"""JSON without surprises: integers only where asked, no duplicate keys, gzip by its first bytes."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from formulations.errors import InstanceError
from formulations.fields import shown

_GZIP_MAGIC = b"\x1f\x8b"
#: A file that unpacks to more than this is refused rather than read (a compressed bomb).
MAX_UNPACKED = 4 * 2**30


def read_bytes(path: Path) -> bytes:
    """Read a file, gunzipping it when it starts with gzip's magic bytes.

    Raises
    ------
    InstanceError
        When the file is absent, unreadable, or a damaged gzip.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InstanceError(f"{path}: cannot be read ({error.strerror})") from error
    if not raw.startswith(_GZIP_MAGIC):
        return raw
    try:
        with gzip.open(path) as file:
            data = file.read(MAX_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InstanceError(f"{path}: damaged gzip ({error})") from error
    if len(data) > MAX_UNPACKED:
        raise InstanceError(f"{path}: unpacks to more than {MAX_UNPACKED} bytes")
    return data


def parse(raw: bytes, what: str, *, floats: bool = False) -> Any:
    """Parse JSON bytes.

    Parameters
    ----------
    raw : bytes
    what : str
        Named in error messages, usually the path.
    floats : bool
        Whether fractional numbers are allowed.

    Raises
    ------
    InstanceError
        For broken JSON, duplicate keys, NaN, or fractions where integers are needed.
    """

    def no_float(text: str) -> float:
        raise InstanceError(f"{what}: numbers must be integers, found {text[:40]}")

    def no_constant(text: str) -> float:
        raise InstanceError(f"{what}: {text} is not a number")

    try:
        return json.loads(
            raw.decode(),
            object_pairs_hook=_unique(what),
            parse_float=None if floats else no_float,
            parse_constant=no_constant,
        )
    except UnicodeDecodeError as error:
        raise InstanceError(f"{what}: not UTF-8 text") from error
    except json.JSONDecodeError as error:
        raise InstanceError(
            f"{what}:{error.lineno}: not valid JSON ({error.msg}, column {error.colno})"
        ) from error
    except RecursionError as error:
        raise InstanceError(f"{what}: nested too deeply") from error
    except ValueError as error:
        if isinstance(error, InstanceError):
            raise
        raise InstanceError(f"{what}: a number is too long to read") from error


def _unique(what: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) != len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    raise InstanceError(f"{what}: key {shown(key)} appears twice in one object")
                seen.add(key)
        return result

    return pairs
