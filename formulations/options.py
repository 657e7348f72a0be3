"""Read ``settings.options``: the wishes of one formulation, checked by name and by kind."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum

from formulations.errors import InstanceError


class Options:
    """The options given to a formulation; unknown names are an error.

    Parameters
    ----------
    formulation : str
    given : mapping
    known : iterable of str
        Names that the formulation reads.
    """

    def __init__(self, formulation: str, given: Mapping[str, object], known: Iterable[str]) -> None:
        self._formulation, self._given = formulation, given
        names = sorted(known)
        for name in given:
            if name not in names:
                near = difflib.get_close_matches(str(name), names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InstanceError(
                    f"{formulation} has no option {name!r}{hint} (there are: {', '.join(names)})"
                )

    def has(self, name: str) -> bool:
        """Whether the caller gave it."""
        return self._given.get(name) is not None

    def integer(self, name: str, default: int, least: int = 1) -> int:
        """A whole number, at least ``least``."""
        value = self._given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, value, f"a whole number, {least} or more")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or False."""
        value = self._given.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def names(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of strings; one string stands for itself."""
        value = self._given.get(name, default)
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise self._wrong(name, value, "a list of names")
        return tuple(value)

    def choice(self, name: str, default: StrEnum) -> str:
        """One value of an enumeration."""
        value = self._given.get(name, default.value)
        allowed = [str(v) for v in type(default)]
        if value not in allowed:
            raise self._wrong(name, value, " or ".join(map(repr, allowed)))
        return str(value)

    def _wrong(self, name: str, value: object, allowed: str) -> InstanceError:
        return InstanceError(
            f"{self._formulation}: option {name!r} is {value!r}, allowed: {allowed}"
        )
