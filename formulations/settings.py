"""Settings of a solve: limits, goals after the objective, and options of a formulation."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from formulations.errors import InstanceError, meant
from formulations.instance import Instance
from formulations.result.certificate import Certificate
from formulations.result.placement import Placement
from formulations.runtime.timing import CallTime


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


@dataclass(frozen=True)
class News(TracePoint):
    """A point of the trace, as it is reported to the caller during the solve.

    Attributes
    ----------
    certified : int or None
        Bound that a checked certificate proves.
    placement : Placement or None
        The checked plan that costs ``objective``; None if the news is a bound.
    """

    certified: int | None = None
    placement: Placement | None = field(default=None, compare=False, repr=False)


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


HOST_MEMORY, SHARDS, TOTAL = "host_memory", "shards", "total"
EVEN_MEMORY, MOVES = "even_memory", "moves"
#: The goals after the objective, in their default order. A table is moved to host memory for the
#: sake of the objective or for lack of room, but not for more headroom.
GOALS = (HOST_MEMORY, EVEN_MEMORY, SHARDS, TOTAL, MOVES)
#: A goal of re-planning: bytes of tables that move.
MOVED_BYTES = "moved_bytes"
#: A goal of a caller's own: the largest stashed bytes of a rank.
STASHED = "stashed"
#: The fill up to which ranks count as even, if the caller does not name ``even_memory``: nobody
#: cuts a table to even out ranks that are less than half full.
EVEN_ENOUGH = 0.5
#: Steps, as shares of a capacity, in which a higher fill counts as worse: by default, because
#: nobody cuts a table for a hundredth either, and if the caller names ``even_memory``.
EVEN_STEP, FINE_STEP = 0.05, 0.001


@dataclass(frozen=True)
class Goals:
    """The goals after the objective, and how much of the objective they may cost.

    Attributes
    ----------
    order : tuple of str
        The five goals, the first counts most: ``host_memory`` (use of memory beyond ranks),
        ``even_memory`` (fill of the fullest rank, then of the fullest machine), ``shards`` (their
        number), ``total`` (sum of all costs) and ``moves`` (tables that are not where they are in
        production). Or those of a caller's own: ``moved_bytes``, and the name of a resource, for
        its use at the fullest place.
    tolerance : float or None
        Share of the objective that may be given up for them. None: nothing, except a tiny share
        (:data:`formulations.goals.seek.GIVEN`) if this gives a nearly full rank much more room.
    enough : float
        Share of its capacity up to which memory counts as even.
    step : float
        Beyond that, fill counts in steps of this share of the capacity, rounded up.
    slack : float
        Share of the value reached in a goal that may be given up for those after it.
    """

    order: tuple[str, ...] = GOALS
    tolerance: float | None = None
    enough: float = EVEN_ENOUGH
    step: float = EVEN_STEP
    slack: float = 0.0

    def __str__(self) -> str:
        even = f"{EVEN_MEMORY}:{100 * self.enough:g}%"
        order = (even if goal == EVEN_MEMORY else goal for goal in self.order)
        given = () if self.tolerance is None else (f"objective:{100 * self.tolerance:g}%",)
        return ",".join((*given, *order))

    def most(self, objective: int) -> int:
        """The largest objective that the goals may lead to."""
        return objective + int(abs(objective) * (self.tolerance or 0.0))

    @property
    def named(self) -> bool:
        """Whether the goals differ from the default."""
        return (self.order, self.enough, self.step) != (GOALS, EVEN_ENOUGH, EVEN_STEP)

    @property
    def own(self) -> bool:
        """Whether one of them is a caller's own, for which time is kept."""
        return not set(self.order) <= set(GOALS)


DEFAULT_GOALS = Goals()


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a solve may take and should look for; good for any instance.

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
    polish : bool
        After the objective, pursue the goals in the time left.
    goals : Goals
        The goals, their order, and how much of the objective they may cost.
    certificate : bool
        Attach a certificate that ``verify`` can re-derive without a solver.
    gap : float
        Relative gap at which to stop: (objective − certified bound)/max(1, |objective|). Without
        ``certificate`` it has no effect.
    options : mapping
        Settings of one formulation (named in its docstring), such as the DP's axes and bins.
    """

    time_limit: float | None = 60.0
    work_limit: float | None = None
    workers: int = field(default_factory=available_cores)
    seed: int = 0
    polish: bool = True
    goals: Goals = DEFAULT_GOALS
    certificate: bool = True
    gap: float = 0.0
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Data:
    """What is known of one instance, and helps with no other.

    Attributes
    ----------
    hint : Placement or None
        A plan to start from, which need not be feasible. If it is not, and moves are counted from a
        plan in production, it is first repaired with few bytes moved. Option −1, or ranks that do
        not suit its option, leave a table free.
    prices : Certificate or None
        Multipliers to start from, such as those of a similar instance's certificate
        (:func:`formulations.proof.carry.carried`); what they prove here is derived anew. A
        certificate of this very instance is kept where nothing better is found. If they name rows
        that the instance does not have, as those of another objective do, they are not used.
    known : callable or None
        Gives both for the instance, where that is made after the settings.
    """

    hint: Placement | None = None
    prices: Certificate | None = None
    known: Callable[[Instance], Data] | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """How a solve and its caller talk while it runs.

    Attributes
    ----------
    stop : threading.Event
        Set by the caller to interrupt: the best plan found is returned.
    on_progress : callable or None
        Called with :class:`News` at every improvement, from any thread.
    call : CallTime or None
        Time of the call that the solve is a part of: its limit holds too, and it counts stages.
    """

    stop: threading.Event = field(default_factory=threading.Event, compare=False)
    on_progress: Callable[[News], None] | None = field(default=None, compare=False)
    call: CallTime | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Settings(Wishes, Data, Runtime):
    """Everything that a caller asks of one solve: its wishes, data of the instance, and how to talk
    while it runs."""

    @property
    def for_another(self) -> Settings:
        """The same for another instance: without the data of this one."""
        return replace(self, hint=Data.hint, prices=Data.prices, known=None)

    @property
    def timed(self) -> CallTime:
        """The time of the call; one without a limit if there is none."""
        return self.call or CallTime()

    @property
    def gap_asked(self) -> float:
        """The gap at which to stop; 0 without certificates."""
        return self.gap if self.certificate else 0.0

    def describe(self) -> dict[str, object]:
        """The settings that an Outcome records."""
        return {
            "time_limit": self.time_limit,
            "work_limit": self.work_limit,
            "workers": self.workers,
            "seed": self.seed,
            "hint": self.hint is not None,
            "polish": self.polish,
            **({"gap": self.gap} if self.gap_asked else {}),
            **({} if self.goals == DEFAULT_GOALS else {"goals": str(self.goals)}),
            **{str(k): v for k, v in self.options.items()},
        }


def parse_goals(text: str, objective: str) -> Goals:
    """Goals as a user writes them: ``step_time:0.1%,moves,even_memory:80%``.

    The objective, if it is named, comes first, with the share of it that may be given up (otherwise
    none); ``even_memory`` may have the fill up to which ranks count as even (otherwise every bit
    counts). Goals that are not named follow those that are, in their usual order.

    Raises
    ------
    InstanceError
        For an unknown name, one named twice, or a percentage of anything else.
    """
    parts = [part.strip() for part in text.split(",")]
    tolerance, first = 0.0, parts[0].partition(":")
    if first[0] == objective:
        tolerance = _percentage(first[2], "a tolerance", "0.1%") if first[1] else 0.0
        parts = parts[1:]
    names, enough, step = [], EVEN_ENOUGH, EVEN_STEP
    for part in parts:
        name, colon, value = part.partition(":")
        _check_goal(name, bool(colon), objective)
        names.append(name)
        if name == EVEN_MEMORY:
            enough = _percentage(value, "the fill that is even enough", "80%") if colon else 0.0
            step = FINE_STEP
    if len(set(names)) < len(names):
        raise InstanceError(f"goals: {text!r} names a goal twice")
    order = (*names, *(name for name in GOALS if name not in names))
    return Goals(order, tolerance, enough, step)


def _percentage(text: str, what: str, example: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?%", text):
        raise InstanceError(f"goals: {what} is a percentage such as {example}, found {text!r}")
    return float(text[:-1]) / 100


def _check_goal(name: str, share: bool, objective: str) -> None:
    if name in GOALS and (name == EVEN_MEMORY or not share):
        return
    if name in GOALS:
        raise InstanceError(
            f"goals: only the objective, {objective}, and {EVEN_MEMORY} take a percentage; "
            f"found one after {name}"
        )
    if name == objective:
        raise InstanceError(f"goals: the objective, {objective}, comes first")
    known = (objective, *GOALS)
    hint = meant(name, known)
    raise InstanceError(f"goals: unknown goal {name!r}{hint} (there are: {', '.join(known)})")


@dataclass(frozen=True)
class ValueType:
    """A kind of value that an option may have.

    Attributes
    ----------
    allowed : str
        The allowed values, in words.
    holds : callable
        Returns whether a value is allowed.
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
    """A list of ``count`` values of one kind."""

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
    """A list of names, either any or from a given set; a single name stands for a list of one."""

    def holds(value: object) -> bool:
        listed = value if isinstance(value, list | tuple) else (value,)
        return all(isinstance(v, str) and (names is None or v in names) for v in listed)

    return ValueType("a list of names" + (f" out of {', '.join(names)}" if names else ""), holds)


class OwnSettings:
    """The options given to a formulation, each of which it knows and of the right kind.

    Parameters
    ----------
    formulation : str
    given : mapping
    kinds : mapping of str to ValueType
        The options that the formulation reads.

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
        """Whether the caller gave an option."""
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
