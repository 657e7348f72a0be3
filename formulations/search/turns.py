"""Scheduling: parts of the search get time according to what they delivered on this instance.

The next turn goes to the part that has used the least time for its weight. A part's weight is a
fixed one and its share of the recent progress of its side. Urgent parts go before all others; parts
with nothing to do wait. A turn without progress doubles the part's next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.clock import OutOfTime
from formulations.search.context import Context
from formulations.search.parameters import DEFAULT

#: Stands in for a weight of 0.
_TINY = 1e-9


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
    waits : callable
        Whether it has nothing to do now; it then gets a turn only if no other part is left.
    urgent : callable
        Whether it takes precedence now.
    least : float
        Its weight without progress.
    anew : bool
        Whether it starts from scratch in every turn; its turns then only grow, and may take all the
        time left.
    spent, gained : float
        Units used so far; recent progress, discounted at each later turn.
    """

    name: str
    run: Callable[[float], bool]
    progress: Callable[[], float]
    amount: float = DEFAULT.first_turn
    spent: float = 0.0
    gained: float = 0.0
    alive: bool = True
    least: float = DEFAULT.least_weight
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
    """Give a turn to the part with the least time relative to its weight; False if none is left."""
    chosen, alive = context.parameters, [p for p in parts if p.alive]
    if not alive:
        return False
    total = sum(p.gained for p in alive) + chosen.notable
    able = [p for p in alive if not p.waits()] or alive
    able = [p for p in able if p.urgent()] or able
    weights = {id(p): p.least + p.gained / max(total, _TINY) for p in able}
    part = min(able, key=lambda p: p.spent / max(weights[id(p)], _TINY))
    before, start = part.progress(), context.clock.now()
    longest = 1.0 if part.anew else chosen.longest_turn
    amount = min(part.amount, max(context.clock.share(longest), 0.05))
    try:
        part.alive = part.run(amount)
    except OutOfTime:
        part.alive = False
    gain = min(max(0.0, part.progress() - before), chosen.most_gain)
    part.spent += max(context.clock.now() - start, chosen.least_spent * amount)
    for other in parts:
        other.gained *= chosen.forgetting
    part.gained += gain
    if part.anew:
        part.amount *= chosen.growth
    else:
        part.amount = part.first if gain else 2 * part.amount
    return True
