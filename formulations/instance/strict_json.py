"""Strict JSON: integers where integers are required, no duplicate keys, gzip by its first bytes.

Fields of an object are read one by one; each mistake is one sentence that says where it is.
"""

from __future__ import annotations

import difflib
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import MAX_VALUE
from formulations.runtime.regular_file import read_regular

_GZIP_MAGIC = b"\x1f\x8b"
#: Most bytes of JSON that are read, after decompression, so that a decompression bomb is refused.
#: An instance of a million options takes about 220 MiB; parsed, it may take 25 times as much.
MAX_BYTES = 256 * 2**20
#: No sum of an instance reaches this in magnitude (see ``MAX_ACTIVITY``).
_MAX_NUMBER = 2**63


def read_bytes(path: Path) -> bytes:
    """Read a file, gunzipping it when it starts with gzip's magic bytes.

    Raises
    ------
    InstanceError
        When the file is absent, unreadable, too large, not a regular file, or a damaged gzip.
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
        When it is damaged, or larger.
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


def parse(raw: bytes, what: str) -> Any:
    """Parse JSON bytes.

    Parameters
    ----------
    raw : bytes
    what : str
        Named in error messages, usually the path.

    Raises
    ------
    InstanceError
        For broken JSON, duplicate keys, or a number that is not finite.
    """

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
            parse_float=finite,
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
    """Refuse numbers that no valid file contains and that floating-point arithmetic cannot handle.

    Raises
    ------
    InstanceError
        For a number of 2^63 or more in magnitude.
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


_MISSING = object()
#: Control characters, lone surrogates, line separators and characters that change the direction of
#: text.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]")


class Reader:
    """One JSON object with known field names.

    Parameters
    ----------
    document : Any
        Must be an object (dict).
    what : str
        Where in the file it is, for messages.
    known : collection of str
        Allowed field names.

    Raises
    ------
    InstanceError
        When it is not an object or has an unknown field.
    """

    def __init__(self, document: Any, what: str, known: Collection[str]) -> None:
        self.what = what
        if not isinstance(document, dict):
            raise InstanceError(f"{what}: an object is needed, found {shown(document)}")
        for key in document:
            if key not in known:
                raise InstanceError(self.unknown("field", key, sorted(known)))
        self._document = document

    def unknown(self, kind: str, name: str, allowed: Sequence[str]) -> str:
        """The error for an unknown name, with the nearest valid one."""
        near = difflib.get_close_matches(name, allowed, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(allowed[:12])}"
        return f"{self.what}: unknown {kind} {shown(name)}; {hint}"

    def has(self, key: str) -> bool:
        """Whether the object has a field."""
        return key in self._document

    def value(self, key: str) -> Any:
        """A required field."""
        if key not in self._document:
            raise InstanceError(f"{self.what}: field {key!r} is missing")
        return self._document[key]

    def get(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """A field of a given type, required if there is no default."""
        if default is not _MISSING and key not in self._document:
            return default
        value = self.value(key)
        self.is_a(value, kind, key)
        return value

    def is_a(self, value: Any, kind: type, key: str) -> bool:
        """Whether a value is of a type: True, or an error that names the required type."""
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            names = {str: "text", int: "an integer", list: "a list", dict: "an object"}
            wanted = names.get(kind, "true or false")
            raise InstanceError(f"{self.what}: {key} must be {wanted}, found {shown(value)}")
        if isinstance(value, str) and (found := UNPRINTABLE.search(value)):
            raise InstanceError(
                f"{self.what}: {key} holds the control character U+{ord(found[0]):04X}, found "
                f"{shown(value)}; allowed: printable text"
            )
        return True

    def items(self, key: str) -> list[Any]:
        """A required list field."""
        items: list[Any] = self.get(key, list)
        return items

    def choice(self, key: str, allowed: Sequence[str], also: str = "") -> str:
        """A text field with a fixed set of values."""
        value = self.value(key)
        if not isinstance(value, str) or value not in allowed:
            more = f" {also}" if also else ""
            raise InstanceError(
                f"{self.what}: {key} is {shown(value)}, allowed: {', '.join(allowed)}{more}"
            )
        return value

    def whole(self, value: Any, key: str) -> int:
        """An integer below 2^53 in magnitude."""
        if (
            type(value) is int and -MAX_VALUE < value < MAX_VALUE
        ):  # the common case first, because a plan has millions of numbers
            return value
        self.is_a(value, int, key)
        if abs(value) >= MAX_VALUE:
            raise InstanceError(f"{self.what}: {key} must be below 2^53 in magnitude")
        return int(value)

    def integer(self, key: str, default: Any = _MISSING) -> Any:
        """An integer field."""
        if default is not _MISSING and key not in self._document:
            return default
        return self.whole(self.value(key), key)

    def integers(self, value: Any, key: str) -> list[int]:
        """A list of integers."""
        self.is_a(value, list, key)
        return [self.whole(v, key) for v in value]


def shown(value: Any) -> str:
    """A value as error messages show it, shortened to 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"
