"""Which part of a placement is opened, and that capacities are exceeded by less and less."""

import random

import numpy as np
import pytest

from formulations.clock import Clock
from formulations.goals.neighbourhoods import Chooser, Descent, Sizes, overflow
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.presolve import usable
from formulations.result.check import check, compute_loads
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.settings import Settings


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
    chooser = Chooser(instance, usable(instance), random.Random(0))
    chooser.sizes.ranks = 2.0
    drawn = [chooser.draw(placement, load) for _ in range(50)]
    parts = [(tables, free) for kind, tables, free in drawn if kind == "ranks"]
    assert parts
    assert all(0 in tables and free.sum() == 2 for tables, free in parts)


def opened(instance: Instance) -> Context:
    """Nothing known yet, counted work."""
    limits = Settings(work_limit=60.0, workers=1)
    return Context(instance, limits, Clock(limits), usable(instance))


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


def test_an_infeasible_start_is_repaired() -> None:
    """20 bytes where 10 fit are one capacity too many; what exceeds it never grows."""
    instance, before = four_on_two(10), 1.0
    descent = Descent(opened(instance), crowded(), seed=1, cap=18)
    assert descent.over == overflow(instance, descent.load) == before
    for _ in range(20):
        if descent.over == 0:
            break
        assert descent.step() == (descent.over < before)
        before = descent.over
    assert check(instance, descent.placement).feasible and descent.objective <= 18


def test_neighbourhoods_grow_where_they_are_solved() -> None:
    """4% more after a solve to the end, 7% less otherwise, never below 2 ranks or 4 tables."""
    sizes = Sizes()
    sizes.learn("ranks", solved=True)
    sizes.learn("tables", solved=False)
    assert (sizes.ranks, sizes.tables) == (pytest.approx(3.12), pytest.approx(11.16))
    for _ in range(50):
        sizes.learn("ranks", solved=False)
        sizes.learn("tables", solved=False)
    assert (sizes.ranks, sizes.tables) == (2.0, 4.0)
