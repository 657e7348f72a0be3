"""What a plan is judged by after its objective, and how much of that may be given up for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from formulations.errors import InstanceError, meant

HOST_MEMORY, SHARDS, TOTAL = "host_memory", "shards", "total"
EVEN_MEMORY, MOVES = "even_memory", "moves"
#: In the order in which they count where the caller says nothing.
NAMES = (HOST_MEMORY, SHARDS, TOTAL, EVEN_MEMORY, MOVES)

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

    order: tuple[str, ...] = NAMES
    tolerance: float = 0.0

    def __str__(self) -> str:
        return ",".join((f"objective:{100 * self.tolerance:g}%", *self.order))

    def most(self, objective: int) -> int:
        """What the objective may be after the pass."""
        return objective + int(abs(objective) * self.tolerance)

    def before(self, one: str, other: str) -> bool:
        """Whether one goal counts more than another."""
        return self.order.index(one) < self.order.index(other)


DEFAULT = Goals()


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
        tolerance = _share(first[2]) if first[1] else 0.0
        parts = parts[1:]
    for part in parts:
        _check(part, objective)
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
    order = (*parts, *(name for name in NAMES if name not in parts))
    return Goals(order, tolerance)


def _share(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?%", text):
        raise InstanceError(f"goals: a tolerance is a percentage such as 0.1%, found {text!r}")
    return float(text[:-1]) / 100


def _check(part: str, objective: str) -> None:
    name, colon, _ = part.partition(":")
    if name in NAMES and not colon:
        return
    if name in NAMES:
        raise InstanceError(
            f"goals: only the objective, {objective}, has a tolerance; found {part!r}"
        )
    if name == objective:
        raise InstanceError(f"goals: the objective, {objective}, comes first")
    known = (objective, *NAMES)
    hint = meant(name, known)
    raise InstanceError(f"goals: unknown goal {name!r}{hint} (there are: {', '.join(known)})")
