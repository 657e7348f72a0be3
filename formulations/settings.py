"""What a caller may ask of any formulation: limits, goals beside the objective, and options."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from formulations.errors import InstanceError, meant
from formulations.result.placement import Placement


@dataclass(frozen=True)
class TracePoint:
    """Best objective and bound known at a moment.

    Attributes
    ----------
    seconds : float
        Since the solve began.
    objective, bound : int or None
        None: not known yet.
    source : str
        Which method reported it.
    """

    seconds: float
    objective: int | None
    bound: int | None
    source: str

    @property
    def known(self) -> tuple[int | None, int | None]:
        """Objective and bound."""
        return self.objective, self.bound


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


HOST_MEMORY, SHARDS, TOTAL = "host_memory", "shards", "total"
EVEN_MEMORY, MOVES = "even_memory", "moves"
#: What a plan is judged by after its objective, in the order in which they count where the caller
#: says nothing.
GOALS = (HOST_MEMORY, SHARDS, TOTAL, EVEN_MEMORY, MOVES)

_OF_OPTIONS = (HOST_MEMORY, SHARDS, TOTAL)


@dataclass(frozen=True)
class Goals:
    """The order in which the finishing pass improves a plan.

    Attributes
    ----------
    order : tuple of str
        Of ``host_memory`` (share of the memory beyond ranks that is used), ``shards`` (how many),
        ``total`` (cost summed over everything), ``even_memory`` (how full the fullest rank is) and
        ``moves`` (tables not where they are in production), all five, the first counts most.
    tolerance : float
        Share of the objective that may be given up for them.
    """

    order: tuple[str, ...] = GOALS
    tolerance: float = 0.0

    def __str__(self) -> str:
        return ",".join((f"objective:{100 * self.tolerance:g}%", *self.order))

    def most(self, objective: int) -> int:
        """What the objective may be after the pass."""
        return objective + int(abs(objective) * self.tolerance)

    def before(self, one: str, other: str) -> bool:
        """Whether one goal counts more than another."""
        return self.order.index(one) < self.order.index(other)


DEFAULT_GOALS = Goals()


@dataclass(frozen=True)
class Settings:
    """Limits and preferences for one solve.

    Attributes
    ----------
    time_limit : float or None
        Seconds of wall clock; None: no limit.
    work_limit : float or None
        Deterministic work (each formulation says in which unit); with ``workers=1`` it makes a
        run reproducible.
    workers : int
        Threads a solver may use.
    seed : int
    hint : Placement or None
        A plan to start from; need not be feasible.
    polish : bool
        After the primary objective, spend leftover time lowering the total, then Σ use/capacity;
        then the finishing pass.
    goals : Goals
        What the finishing pass improves, in which order, and what may be given up for it.
    certificate : bool
        Attach a certificate that ``verify`` can re-derive without a solver.
    stop : threading.Event
        Set by the caller to interrupt: the best plan found is returned.
    on_progress : callable or None
        Called with a :class:`TracePoint` at every improvement, from any thread.
    options : mapping
        Settings of one formulation (named in its docstring), such as the DP's axes and bins.
    """

    time_limit: float | None = 60.0
    work_limit: float | None = None
    workers: int = field(default_factory=available_cores)
    seed: int = 0
    hint: Placement | None = None
    polish: bool = True
    goals: Goals = DEFAULT_GOALS
    certificate: bool = True
    stop: threading.Event = field(default_factory=threading.Event, compare=False)
    on_progress: Callable[[TracePoint], None] | None = field(default=None, compare=False)
    options: Mapping[str, object] = field(default_factory=dict)

    def describe(self) -> dict[str, object]:
        """The settings that an Outcome records."""
        return {
            "time_limit": self.time_limit,
            "work_limit": self.work_limit,
            "workers": self.workers,
            "seed": self.seed,
            "hint": self.hint is not None,
            "polish": self.polish,
            **({} if self.goals == DEFAULT_GOALS else {"goals": str(self.goals)}),
            **{str(k): v for k, v in self.options.items()},
        }


def parse_goals(text: str, objective: str) -> Goals:
    """Goals as a user writes them: ``step_time:0.1%,moves,shards``.

    The objective comes first if at all, with what may be given up of it; goals that are not named
    follow those that are (``even_memory`` last but for ``moves``).

    Raises
    ------
    InstanceError
        For an unknown name, one named twice, a tolerance of anything but the objective, or
        ``even_memory`` before what an option decides.
    """
    parts = [part.strip() for part in text.split(",")]
    tolerance, first = 0.0, parts[0].partition(":")
    if first[0] == objective:
        tolerance = _tolerance(first[2]) if first[1] else 0.0
        parts = parts[1:]
    for part in parts:
        _check_goal(part, objective)
    if len(set(parts)) < len(parts):
        raise InstanceError(f"goals: {text!r} names one twice")
    at = parts.index(EVEN_MEMORY) if EVEN_MEMORY in parts else len(parts)
    later = ", ".join(name for name in _OF_OPTIONS if name in parts[at:])
    if later:
        raise InstanceError(
            f"goals: even_memory before {later} is not supported, as memory is evened by moving "
            f"shards only; name {later} first"
        )
    parts[at:at] = [name for name in _OF_OPTIONS if name not in parts]
    order = (*parts, *(name for name in GOALS if name not in parts))
    return Goals(order, tolerance)


def _tolerance(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?%", text):
        raise InstanceError(f"goals: a tolerance is a percentage such as 0.1%, found {text!r}")
    return float(text[:-1]) / 100


def _check_goal(part: str, objective: str) -> None:
    name, colon, _ = part.partition(":")
    if name in GOALS and not colon:
        return
    if name in GOALS:
        raise InstanceError(
            f"goals: only the objective, {objective}, has a tolerance; found {part!r}"
        )
    if name == objective:
        raise InstanceError(f"goals: the objective, {objective}, comes first")
    known = (objective, *GOALS)
    hint = meant(name, known)
    raise InstanceError(f"goals: unknown goal {name!r}{hint} (there are: {', '.join(known)})")


@dataclass(frozen=True)
class ValueType:
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


FLAG = ValueType("true or false", lambda value: isinstance(value, bool))


def whole(least: int = 1) -> ValueType:
    """A whole number, at least ``least``."""

    def holds(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return ValueType(f"a whole number, {least} or more", holds)


def number() -> ValueType:
    """A number that is not negative."""

    def holds(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return 0 <= value < float("inf")

    return ValueType("a number, 0 or more", holds)


def several(count: int, each: ValueType) -> ValueType:
    """A list of so many values of one kind."""

    def holds(value: object) -> bool:
        return (
            isinstance(value, list | tuple) and len(value) == count and all(map(each.holds, value))
        )

    return ValueType(f"a list of {count}, each {each.allowed}", holds)


def one_of(names: Iterable[str]) -> ValueType:
    """One of some names."""
    known = [str(name) for name in names]
    return ValueType(" or ".join(map(repr, known)), lambda value: value in known)


def list_of(names: Collection[str] | None = None) -> ValueType:
    """A list of names, of any or of some; one name stands for a list of it."""

    def holds(value: object) -> bool:
        listed = value if isinstance(value, list | tuple) else (value,)
        return all(isinstance(v, str) and (names is None or v in names) for v in listed)

    return ValueType("a list of names" + (f" out of {', '.join(names)}" if names else ""), holds)


class OwnSettings:
    """The options given to a formulation; each is one it knows and of the right kind.

    Parameters
    ----------
    formulation : str
    given : mapping
    kinds : mapping of str to ValueType
        What the formulation reads.

    Raises
    ------
    InstanceError
        Naming the option, what was found and what is allowed.
    """

    def __init__(
        self, formulation: str, given: Mapping[str, object], kinds: Mapping[str, ValueType]
    ) -> None:
        self._given: Mapping[str, object] = given
        for name, value in given.items():
            if name not in kinds:
                hint = meant(str(name), kinds)
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
