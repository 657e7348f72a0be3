"""The way from one plan to another, within the capacities at every step."""

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Placement, check
from milp_planner.features.moves.order import migration
from tests.formulations.examples import ANY, at, built


def pieces(capacity: int, sizes: list[int]) -> Instance:
    """Tables of one shard each on two ranks; a shard costs its size."""
    return built([at(ANY, size, hbm=size, move_bytes=size) for size in sizes], hbm=capacity)


def on(ranks: list[int], instance: Instance) -> Placement:
    """Each table on its rank."""
    options = np.asarray([instance.table_options[t] for t in range(len(ranks))])
    return Placement(options, [[np.asarray([r])] for r in ranks])


def test_the_first_move_brings_most() -> None:
    """The largest table moves first; every step states the plan's cost after it."""
    instance = pieces(100, [2, 9, 4])
    found, placements = migration(instance, on([0, 0, 0], instance), on([1, 1, 0], instance))
    assert [move.tables for move in found.moves] == [("t1",), ("t0",)]
    assert [move.objective for move in found.moves] == [9, 11]
    assert [move.bytes for move in found.moves] == [9, 2] and found.before == 15
    assert placements[-1].to_lists(0) == [[1]] and not found.stuck


def test_a_table_on_its_way_counts_twice() -> None:
    """Two tables that fill a rank each cannot swap places; with room for one more they can."""
    for capacity, stuck in ((6, ("t0", "t1")), (12, ())):
        instance = pieces(capacity, [6, 6])
        found, _ = migration(instance, on([0, 1], instance), on([1, 0], instance))
        assert found.stuck == stuck


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_capacity_is_exceeded_on_the_way(data: st.DataObject) -> None:
    """Everything fits before, during (old and new place at once) and after each step."""
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    ranks = st.lists(st.integers(0, 1), min_size=len(sizes), max_size=len(sizes))
    before, after = data.draw(ranks), data.draw(ranks)
    loads = [sum(s for s, r in zip(sizes, p, strict=True) if r == k)
             for p in (before, after) for k in (0, 1)]  # fmt: skip
    capacity = max(loads) + data.draw(st.integers(0, 6))
    instance = pieces(capacity, sizes)
    ends = on(before, instance), on(after, instance)
    found, placements = migration(instance, *ends)
    with patch("milp_planner.features.moves.order.CHECKED", 0.3):
        assert migration(instance, *ends)[0] == found  # the search's own sums agree with the check
    now = list(before)
    for move, placement in zip(found.moves, placements, strict=True):
        (table,) = (int(name[1:]) for name in move.tables)
        held = sum(s for s, r in zip(sizes, now, strict=True) if r == after[table])
        assert held + sizes[table] <= capacity
        now[table] = after[table]
        assert check(instance, placement).feasible
        assert check(instance, placement).objectives["busiest_rank"] == move.objective
    moved = {name for move in found.moves for name in move.tables}
    differ = {f"t{i}" for i in range(len(sizes)) if before[i] != after[i]}
    assert moved | set(found.stuck) == differ and not moved & set(found.stuck)
