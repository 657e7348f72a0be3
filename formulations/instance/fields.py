"""Read fields of a parsed JSON object, each mistake one sentence with its place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from typing import Any

from formulations.errors import InstanceError
from formulations.instance import MAX_VALUE

_MISSING = object()
#: Control characters, lone surrogates, line separators and what turns the direction of text.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069]")


class Reader:
    """One JSON object with known field names.

    Parameters
    ----------
    document : Any
        Must be an object (dict).
    what : str
        Where it stands, for messages.
    known : collection of str
        Allowed field names.

    Raises
    ------
    InstanceError
        When it is no object or has an unknown field.
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
        """Sentence for an unknown name with the nearest valid one."""
        near = difflib.get_close_matches(name, allowed, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(allowed[:12])}"
        return f"{self.what}: unknown {kind} {shown(name)}; {hint}"

    def has(self, key: str) -> bool:
        """Whether a field is given."""
        return key in self._document

    def value(self, key: str) -> Any:
        """A field that must be given."""
        if key not in self._document:
            raise InstanceError(f"{self.what}: field {key!r} is missing")
        return self._document[key]

    def get(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """A field of a type; without a default it must be given."""
        if default is not _MISSING and key not in self._document:
            return default
        value = self.value(key)
        self.is_a(value, kind, key)
        return value

    def is_a(self, value: Any, kind: type, key: str) -> bool:
        """True, or an error saying which type the field needs."""
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
        """A list field that must be given."""
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
        if type(value) is int and -MAX_VALUE < value < MAX_VALUE:  # a plan has millions of them
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
    """A found value in an error sentence, shortened to 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"
