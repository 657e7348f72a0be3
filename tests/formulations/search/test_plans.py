"""Makers of plans, one at a time."""

from __future__ import annotations

import numpy as np

from formulations import Settings
from formulations.clock import Clock
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.search.context import Context
from formulations.search.plans import Plans


def tight() -> Instance:
    """Twelve tables on four ranks whose memory all of them fill only if every one is slow."""
    builder = InstanceBuilder(
        [[0, 1], [2, 3]], ["p"], [("hbm", "rank", [6, 6, 6, 6])], "busiest_rank"
    )
    for index in range(12):
        builder.add_table(f"t{index}")
        for name, cost, use in (("fast", 1, 6), ("slow", 1000 + index, 2)):
            builder.add_option(name, [Block(Where.ANY_RANK, [Shard({"hbm": use}, [cost])])])
    return builder.build()


def test_a_first_plan_is_met_however_far_above_the_bound() -> None:
    """Passes near a weak bound meet none; the first plan's target is what no plan exceeds."""
    asked = Settings(time_limit=None, work_limit=100.0, workers=1, seed=1)
    instance = tight()
    context = Context(instance, asked, Clock(asked), np.ones(instance.num_options, dtype=bool))
    fast = np.arange(0, instance.num_options, 2)
    plans = Plans(context, fast)
    assert plans.anneal(False, 0.001, 1.0)
    assert context.objective is None
    assert not plans.first(1.0)
    assert context.objective is not None
    work = context.work
    assert not plans.first(1.0)
    assert context.work == work
