"""Plans brought closer to the one in production: ranks renamed, tables returned."""

from dataclasses import replace

import numpy as np
import pytest

from formulations import Instance, InstanceBuilder, Objective, Placement
from formulations.instance import Current, Scope, Where
from formulations.instance.build import Block, Shard
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.search.home import closer, pulled, renamed, returned
from formulations.search.loops import waited_for


def instance(sizes: list[int], machines: list[list[int]], before: list[int]) -> Instance:
    """Whole tables of these sizes and costs, on ranks of these machines, with their ranks in
    production."""
    ranks = sum(map(len, machines))
    room = ("hbm", Scope.RANK, [2 * sum(sizes)] * ranks)
    builder = InstanceBuilder(machines, ["step"], [room], Objective.BUSIEST_RANK)
    for number, size in enumerate(sizes):
        builder.add_table(f"t{number}")
        shard = Shard(use={"hbm": size}, cost=[size], move_bytes=size)
        builder.add_option("whole", [Block(Where.ANY_RANK, [shard])])
    return builder.build(
        current=[Current(table, table, ((rank,),)) for table, rank in enumerate(before)]
    )


def at(*ranks: int) -> Placement:
    """Every table whole, on these ranks."""
    return Placement(np.arange(len(ranks)), [[np.array([rank])] for rank in ranks])


def moved(problem: Instance, plan: Placement) -> int:
    """Bytes that the plan moves."""
    return moved_bytes(problem, plan, moved_tables(problem, plan))


def test_exchanged_ranks_are_given_their_names_back() -> None:
    """The same plan under other names of ranks and of machines moves nothing."""
    problem = instance([5, 4, 3, 2], [[0, 1], [2, 3]], [0, 1, 2, 3])
    assert moved(problem, at(3, 2, 1, 0)) == 14
    assert moved(problem, renamed(problem, at(3, 2, 1, 0))) == 0
    # across machines only one pair can be exchanged as a whole: the heavier one comes home
    assert moved(problem, renamed(problem, at(0, 2, 1, 3))) == 4 + 3


def test_ranks_that_differ_keep_their_names() -> None:
    """If the exchange would overfill a smaller rank, nothing is renamed."""
    problem = instance([5, 4], [[0, 1]], [0, 1])
    small = replace(problem, resources=(replace(problem.resources[0], capacity=np.array([4, 9])),))
    plan = at(1, 0)
    assert moved(small, renamed(small, plan)) == 9


@pytest.mark.parametrize(("most", "bytes_left"), [(9, 4), (8, 7), (12, 0)])
def test_tables_return_as_far_as_the_cost_allows(most: int, bytes_left: int) -> None:
    """Tables of 5, 4 and 3 were all on rank 0: at a cost of 9 two of them are there again, at 12
    all, at 8 the best pair."""
    assert waited_for(lambda: False)
    problem = instance([5, 4, 3], [[0, 1]], [0, 0, 0])
    plan = returned(problem, at(0, 1, 1), most)
    assert check(problem, plan).objectives["busiest_rank"] <= most
    assert moved(problem, plan) <= moved(problem, at(0, 1, 1))
    if most == 12:
        assert moved(problem, plan) == bytes_left


def test_tables_that_must_change_places_return_together() -> None:
    """The tables of 5 and 4 were exchanged beside one of 6 each. At a cost of 11 neither returns
    alone; both do together, if there is time."""
    assert waited_for(lambda: False)
    problem = instance([5, 4, 6, 6], [[0, 1]], [0, 1, 0, 1])
    plan = at(1, 0, 0, 1)
    assert moved(problem, returned(problem, plan, 11)) == moved(problem, plan) == 9
    assert moved(problem, pulled(problem, plan, 11)) == 0
    assert moved(problem, pulled(problem, plan, 11, over=lambda: True)) == 9


def test_closer_is_never_worse() -> None:
    """On drawn plans: no more bytes than before, no more than the limit, and still a plan."""
    assert waited_for(lambda: False)
    draw = np.random.default_rng(3)
    for _ in range(30):
        sizes = [int(size) for size in draw.integers(1, 20, 7)]
        before, now = draw.integers(0, 4, (2, 7))
        problem = instance(sizes, [[0, 1], [2, 3]], before.tolist())
        plan = at(*map(int, now))
        cost = check(problem, plan).objectives["busiest_rank"]
        found = closer(problem, plan, int(1.2 * cost))
        verdict = check(problem, found)
        assert verdict.feasible and verdict.objectives["busiest_rank"] <= int(1.2 * cost)
        assert moved(problem, found) <= moved(problem, plan)
