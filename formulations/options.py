"""``settings.options``: the wishes of one formulation, checked by name and by kind."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from formulations.errors import InstanceError


@dataclass(frozen=True)
class Kind:
    """What an option may be.

    Attributes
    ----------
    allowed : str
        In words.
    holds : callable
        Whether a value is that.
    """

    allowed: str
    holds: Callable[[object], bool]


FLAG = Kind("true or false", lambda value: isinstance(value, bool))


def whole(least: int = 1) -> Kind:
    """A whole number, at least ``least``."""

    def holds(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return Kind(f"a whole number, {least} or more", holds)


def one_of(names: Iterable[str]) -> Kind:
    """One of some names."""
    known = [str(name) for name in names]
    return Kind(" or ".join(map(repr, known)), lambda value: value in known)


def list_of(names: Collection[str] | None = None) -> Kind:
    """A list of names, of any or of some; one name stands for a list of it."""

    def holds(value: object) -> bool:
        listed = value if isinstance(value, list | tuple) else (value,)
        return all(isinstance(v, str) and (names is None or v in names) for v in listed)

    return Kind("a list of names" + (f" out of {', '.join(names)}" if names else ""), holds)


class Options:
    """The options given to a formulation; each is one it knows and of the right kind.

    Parameters
    ----------
    formulation : str
    given : mapping
    kinds : mapping of str to Kind
        What the formulation reads.

    Raises
    ------
    InstanceError
        Naming the option, what was found and what is allowed.
    """

    def __init__(
        self, formulation: str, given: Mapping[str, object], kinds: Mapping[str, Kind]
    ) -> None:
        self._given: Mapping[str, object] = given
        for name, value in given.items():
            if name not in kinds:
                near = difflib.get_close_matches(str(name), kinds, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                known = ", ".join(sorted(kinds)) or "none"
                raise InstanceError(
                    f"{formulation} has no option {name!r}{hint} (there are: {known})"
                )
            if not kinds[name].holds(value):
                raise InstanceError(
                    f"{formulation}: option {name!r} is {value!r}, allowed: {kinds[name].allowed}"
                )

    def has(self, name: str) -> bool:
        """Whether the caller gave it."""
        return name in self._given

    def integer(self, name: str, default: int) -> int:
        """An option of :func:`whole`."""
        value = self._given.get(name, default)
        assert isinstance(value, int)
        return value

    def flag(self, name: str, default: bool) -> bool:
        """An option of :data:`FLAG`."""
        return bool(self._given.get(name, default))

    def names(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """An option of :func:`list_of`."""
        value = self._given.get(name, default)
        if isinstance(value, str):
            return (value,)
        assert isinstance(value, list | tuple)
        return tuple(value)

    def choice(self, name: str, default: StrEnum) -> str:
        """An option of :func:`one_of`."""
        return str(self._given.get(name, default.value))
