"""Which part of a placement is opened, and that capacities are exceeded by less and less."""

import random

import pytest

from formulations.goals.neighbourhoods import Chooser, Descent, Sizes, overflow
from formulations.presolve import usable
from formulations.result.check import check, compute_loads
from tests.formulations.examples import ANY, MACHINE, at, built, placed
from tests.formulations.search.searches import opened


def test_ranks_of_a_machine_open_what_lies_on_all_of_it() -> None:
    """Two of four ranks open: the table-row-wise table is open as well, if not its assignment."""
    instance = built([at(MACHINE, 3), *[at(ANY, 5)] * 4], machines=[range(4), [4]])
    placement = placed(range(5), range(4), [0], [1], [2], [3])
    load = compute_loads(instance, placement)
    chooser = Chooser(instance, usable(instance), random.Random(0))
    chooser.sizes.ranks = 2.0
    drawn = [chooser.draw(placement, load) for _ in range(50)]
    parts = [(tables, free) for kind, tables, free in drawn if kind == "ranks"]
    assert parts
    assert all(0 in tables and free.sum() == 2 for tables, free in parts)


def test_an_infeasible_start_is_repaired() -> None:
    """Four tables of 5 bytes on a rank of 10 are one capacity too many; what exceeds it never
    grows."""
    instance, before = built([at(ANY, cost, hbm=5) for cost in (3, 4, 5, 6)], hbm=10), 1.0
    search = opened(instance, work_limit=60.0, workers=1)
    descent = Descent(search, placed(range(4), *[[0]] * 4), seed=1, cap=18)
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
