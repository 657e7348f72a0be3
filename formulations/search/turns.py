"""Scheduling: the next turn goes to the part that has used the least time.

A part may have several shares of the time; what it has used is divided by them. A turn without
progress doubles the part's next one, and progress makes it as short as the first. Urgent parts go
before all others; parts with nothing to do wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.clock import OutOfTime
from formulations.cpsat import POLL
from formulations.search.context import Context
from formulations.search.parameters import DEFAULT


@dataclass
class Part:
    """A part of the search that takes turns.

    Attributes
    ----------
    name : str
    run : callable
        Takes an amount of time (units of the clock) and returns whether it may deliver more.
    progress : callable
        A number that grows when the part delivers.
    amount : float
        Length of its next turn.
    spent : float
        Units used so far.
    alive : bool
        Whether it may deliver more.
    shares : int
        Shares of the time that it has, where most parts have one.
    waits : callable
        Whether it has nothing to do now; it then gets a turn only if no other part is left.
    urgent : callable
        Whether it takes precedence now.
    anew : bool
        Whether it starts from scratch in every turn; its turns then only grow, and may take all the
        time left.
    """

    name: str
    run: Callable[[float], bool]
    progress: Callable[[], float]
    amount: float = DEFAULT.first_turn
    spent: float = 0.0
    alive: bool = True
    shares: int = 1
    waits: Callable[[], bool] = lambda: False
    urgent: Callable[[], bool] = lambda: False
    anew: bool = False

    def __post_init__(self) -> None:
        self.first = self.amount


def take_turns(context: Context, parts: list[Part], over: Callable[[], bool]) -> None:
    """Give turns until the search is over or no part can deliver more."""
    while not over() and step(context, parts):
        pass


def step(context: Context, parts: list[Part]) -> bool:
    """Give a turn to the part that has used the least time; False if none is left."""
    alive, clock = [p for p in parts if p.alive], context.clock
    if not alive:
        return False
    able = [p for p in alive if not p.waits()] or alive
    able = [p for p in able if p.urgent()] or able
    part = min(able, key=lambda p: p.spent / p.shares)
    before, start = part.progress(), clock.now()
    longest = 1.0 if part.anew else context.parameters.longest_turn
    amount = max(min(part.amount, clock.share(longest)), POLL)
    try:
        part.alive = part.run(amount)
    except OutOfTime:
        part.alive = False
    part.spent += max(clock.now() - start, POLL)  # one that ends at once does not take every turn
    progress = part.progress() > before and not part.anew
    part.amount = part.first if progress else 2 * part.amount
    return True
