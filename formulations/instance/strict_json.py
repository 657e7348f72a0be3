"""JSON without surprises: integers only where asked, no duplicate keys, gzip by its first bytes."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from pathlib import Path
from typing import Any

from formulations.errors import InstanceError
from formulations.instance.fields import shown
from formulations.regular_file import read_regular

_GZIP_MAGIC = b"\x1f\x8b"
#: Most bytes of JSON that are read, packed or not: a compressed bomb is refused, not unpacked.
#: An instance of a million options takes about 220 MiB; parsed, text may take 25 times its size.
MAX_BYTES = 256 * 2**20
#: No sum of an instance reaches this in magnitude (see ``MAX_ACTIVITY``).
_MAX_NUMBER = 2**63


def read_bytes(path: Path) -> bytes:
    """Read a file, gunzipping it when it starts with gzip's magic bytes.

    Raises
    ------
    InstanceError
        When the file is absent, unreadable, too large, no regular file, or a damaged gzip.
    """
    try:
        raw = read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InstanceError(f"{path}: cannot be read ({reason})") from error
    return unpack(raw, str(path)) if raw.startswith(_GZIP_MAGIC) else raw


def unpack(packed: bytes, what: str) -> bytes:
    """Gunzip, but never more than ``MAX_BYTES``.

    Raises
    ------
    InstanceError
        When it is damaged, or unpacks to more.
    """
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InstanceError(f"{what}: damaged gzip ({error})") from error
    if len(data) > MAX_BYTES:
        raise InstanceError(
            f"{what}: unpacks to more than {MAX_BYTES >> 20} MiB, the most that is read"
        )
    return data


def parse(raw: bytes, what: str, *, floats: bool = False) -> Any:
    """Parse JSON bytes.

    Parameters
    ----------
    raw : bytes
    what : str
        Named in error messages, usually the path.
    floats : bool
        Whether fractional numbers are allowed (finite ones).

    Raises
    ------
    InstanceError
        For broken JSON, duplicate keys, NaN, or fractions where integers are needed.
    """

    def no_float(text: str) -> float:
        raise InstanceError(f"{what}: numbers must be integers, found {text[:40]}")

    def finite(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise InstanceError(f"{what}: {text[:40]} is too large for a number")
        return number

    def no_constant(text: str) -> float:
        raise InstanceError(f"{what}: {text} is not a number")

    try:
        return json.loads(
            raw.decode(),
            object_pairs_hook=_unique(what),
            parse_float=finite if floats else no_float,
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


def check_numbers(value: Any, what: str) -> None:
    """Refuse numbers that no file of ours holds and that arithmetic in floats cannot take.

    Raises
    ------
    InstanceError
        For one of 2^63 or more in magnitude.
    """
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, (int, float)) and abs(value) >= _MAX_NUMBER:
            raise InstanceError(f"{what}: {shown(value)} is out of range; allowed: ±2^63")


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
