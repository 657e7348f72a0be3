"""Both sides of the search with one worker, each with half of the work.

With several workers the sides run beside each other, each with half of the time. With one they
take turns, and on small instances the exact model's turns grow until nothing is left for the other
side, whose parts would then seem to buy nothing. So here the side that had less work is next, and
the exact model never takes more than half of what is left.
"""

from __future__ import annotations

from contextlib import nullcontext

from formulations.search.lists import Shared
from formulations.search.turns import Part, step


def by_work(shared: Shared, makers: list[Part], parts: tuple[list[Part], list[Part]]) -> None:
    """In place of ``conductor._in_turn``."""
    context, (exact, second) = shared.context, parts
    spent = [0.0, 0.0]
    while not context.over():
        first = not shared.whole.give_up()
        sides = [makers, exact if first else second]
        alive = [side for side in (0, 1) if any(part.alive for part in sides[side])]
        if not alive:
            return
        side, before = min(alive, key=lambda s: spent[s]), context.clock.now()
        half = context.clock.holding_back(context.clock.share(0.5))
        with half if first and side == 1 else nullcontext():
            step(context, sides[side])
        spent[side] += context.clock.now() - before
