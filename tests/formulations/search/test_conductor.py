"""The conductor: what it starts from, and that nothing counts once it has answered."""

from __future__ import annotations

import numpy as np

from formulations import Settings
from formulations.clock import Clock
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.presolve import usable
from formulations.result.outcome import BoundSource, Status
from formulations.result.placement import Placement
from formulations.search.conductor import conduct
from formulations.search.context import Context


def three_on_two() -> Instance:
    """Tables of cost 4, 3 and 3 on two ranks: 6 is the best, 5 the mean."""
    builder = InstanceBuilder([[0, 1]], ["p"], [], "busiest_rank")
    for name, cost in (("a", 4), ("b", 3), ("c", 3)):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [cost])])])
    return builder.build()


def on(*ranks: int) -> Placement:
    """Each table on its rank."""
    return Placement(np.arange(3), [[np.asarray([rank])] for rank in ranks])


def test_a_hint_is_improved() -> None:
    """From ten on one rank to six, proved."""
    settings = Settings(time_limit=None, work_limit=20.0, workers=1, hint=on(0, 0, 0))
    outcome = conduct(three_on_two(), settings, Clock(settings), "auto")
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, 6, 6)


def test_what_comes_late_is_neither_taken_nor_told() -> None:
    """A thread left behind may still find plans and bounds: outcome and trace agree without."""
    instance, settings = three_on_two(), Settings(workers=1, time_limit=60)
    clock = Clock(settings)
    context = Context(instance, settings, clock, usable(instance))
    assert context.offer(on(0, 0, 1), "early")
    context.close()
    assert not context.offer(on(0, 1, 1), "late")
    context.lift(6, BoundSource("late", exact=True))
    assert (context.objective, context.bound, context.over()) == (7, None, True)
    assert [point.objective for point in clock.trace] == [7]
