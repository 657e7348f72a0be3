"""Plans brought closer to the one in production by other names of their ranks."""

from dataclasses import replace

import numpy as np

from formulations import Instance, Placement
from formulations.instance import Current
from formulations.result.check import moved_bytes, moved_tables
from formulations.search.home import renamed
from tests.formulations.examples import ANY, at, built


def instance(sizes: list[int], machines: list[list[int]], before: list[int]) -> Instance:
    """Whole tables of these sizes and costs, on ranks of these machines, with their ranks in
    production."""
    tables = [{"whole": at(ANY, size, hbm=size, move_bytes=size)} for size in sizes]
    current = [Current(table, table, ((rank,),)) for table, rank in enumerate(before)]
    return built(tables, machines=machines, hbm=2 * sum(sizes), current=current)


def whole(*ranks: int) -> Placement:
    """Every table whole, on these ranks."""
    return Placement(np.arange(len(ranks)), [[np.array([rank])] for rank in ranks])


def moved(problem: Instance, plan: Placement) -> int:
    """Bytes that the plan moves."""
    return moved_bytes(problem, plan, moved_tables(problem, plan))


def test_exchanged_ranks_are_given_their_names_back() -> None:
    """The same plan under other names of ranks and of machines moves nothing."""
    problem = instance([5, 4, 3, 2], [[0, 1], [2, 3]], [0, 1, 2, 3])
    assert moved(problem, whole(3, 2, 1, 0)) == 14
    assert moved(problem, renamed(problem, whole(3, 2, 1, 0))) == 0
    # across machines only one pair can be exchanged as a whole: the heavier one comes home
    assert moved(problem, renamed(problem, whole(0, 2, 1, 3))) == 4 + 3


def test_ranks_that_differ_keep_their_names() -> None:
    """If the exchange would overfill a smaller rank, nothing is renamed."""
    problem = instance([5, 4], [[0, 1]], [0, 1])
    small = replace(problem, resources=(replace(problem.resources[0], capacity=np.array([4, 9])),))
    plan = whole(1, 0)
    assert moved(small, renamed(small, plan)) == 9
