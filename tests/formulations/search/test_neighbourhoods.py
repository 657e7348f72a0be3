"""Which part of a placement is opened, and that opening it never makes the placement worse."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from formulations.clock import Clock
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.presolve import usable
from formulations.result.check import check, compute_loads
from formulations.result.placement import Placement
from formulations.search.context import Context, Sizes
from formulations.search.neighbourhoods import Chooser, Descent, overflow
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances


def test_ranks_of_a_machine_open_what_lies_on_all_of_it() -> None:
    """Two of four ranks open: the table-row-wise table is open as well, if not its assignment."""
    builder = InstanceBuilder([[0, 1, 2, 3], [4]], ["p"], [], "busiest_rank")
    builder.add_table("wide")
    builder.add_option("o", [Block(Where.ONE_MACHINE, [Shard({}, [3])], 1)])
    for table in "abcd":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])])])
    instance = builder.build()
    ranks = [[np.arange(4)], *([np.asarray([r])] for r in range(4))]
    placement = Placement(np.arange(5), ranks)
    load = compute_loads(instance, placement)
    chooser = Chooser(instance, usable(instance), random.Random(0), Sizes(ranks=2.0))
    drawn = [chooser.draw(placement, load) for _ in range(50)]
    parts = [(tables, free) for kind, tables, free in drawn if kind == "ranks"]
    assert parts
    assert all(0 in tables and free.sum() == 2 for tables, free in parts)


def opened(instance: Instance) -> Context:
    """Nothing known yet, counted work."""
    limits = Settings(work_limit=60.0, workers=1)
    return Context(instance, limits, Clock(limits), usable(instance))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances(), st.integers(0, 99))
def test_a_descent_never_rises(instance: Instance, seed: int) -> None:
    """Every step from the optimum stays at the optimum and passes the check."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0 and truth.placement is not None)
    assert truth.placement is not None
    descent = Descent(opened(instance), truth.placement, seed)
    for _ in range(4):
        descent.step()
        assert descent.objective == truth.objective and descent.over == 0
        assert check(instance, descent.placement).feasible


def crowded() -> Placement:
    """Four tables, all on rank 0."""
    return Placement(np.arange(4), [[np.asarray([0])] for _ in range(4)])


def four_on_two(hbm: int) -> Instance:
    """Four tables of 5 bytes and cost 3, 4, 5 and 6 on two ranks."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", hbm)], "busiest_rank")
    for name, cost in zip("abcd", (3, 4, 5, 6), strict=True):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 5}, [cost])])])
    return builder.build()


def test_an_infeasible_start_is_repaired_and_then_improved() -> None:
    """20 bytes where 10 fit are one capacity too many; the end is 9 = 3 + 6 = 4 + 5."""
    instance = four_on_two(10)
    context = opened(instance)
    descent = Descent(context, crowded(), seed=1)
    assert descent.over == overflow(instance, descent.load) == 1.0
    for _ in range(20):
        descent.step()
    assert descent.over == 0 and descent.objective == 9
    assert (context.objective, descent.failures > 0) == (9, True)


def test_a_target_counts_as_overflow() -> None:
    """18 on a rank where 9 are aimed at: 9 too much, as a share of 9; nothing once it is met."""
    descent = Descent(opened(four_on_two(20)), crowded(), seed=1, target=9)
    assert descent.over == 1.0
    descent.aim(18)
    assert descent.over == 0 and descent.target == 18
