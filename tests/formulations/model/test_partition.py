"""Partitions: what distinguishes ranks, and which ranks may be swapped.

Which ranks are interchangeable, by which table they are ordered, and how plans are renamed.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from formulations import Instance
from formulations.instance import Current, Pin, Where
from formulations.instance.build import Block, Shard
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import lower
from formulations.model import partition
from formulations.model.build import build
from formulations.model.partition import by_class, by_machine, by_rank
from formulations.model.parts import Parts
from formulations.model.placements import encode
from formulations.model.symmetry import anchor_table, equal_ranks, renamed
from formulations.result.check import check
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, MACHINES, at, built, placed
from tests.formulations.model.solved import broken_rows, pooled
from tests.formulations.model.test_build import two_machines
from tests.formulations.strategies import instances


def test_cells_tell_apart_what_differs() -> None:
    """Equal ranks share a cell; another capacity, list or pin makes a cell of its own."""
    instance = two_machines()
    partitions = (pooled(instance), by_class(instance), by_rank(instance))
    assert [p.count for p in partitions] == [1, 1, 2]
    plain = built([at(ANY, 1)], "total", MACHINES, hbm=5)
    assert [p.count for p in (by_class(plain), by_machine(plain))] == [1, 2]
    cells = by_class(built([{"o": at(ANY, 1), "l": at([1], 1)}], "total", MACHINES, hbm=5))
    assert sorted(cells.cell_size.tolist()) == [1, 1, 2]
    assert np.bincount(cells.group_of).tolist() == [1, 1]


def test_few_lists_among_many_options_tell_nothing_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where cells and options are too many, one list among many options distinguishes no ranks."""
    table = {f"o{index}": at(ANY, 1) for index in range(30)} | {"l": at([1], 1)}
    instance = built([table], "total", MACHINES, hbm=5)
    assert by_class(instance).count == 3
    monkeypatch.setattr(partition, "MOST_LISTED", 10)
    assert by_class(instance).count == 1
    monkeypatch.setattr(partition, "FEW_LISTS", 0.01)
    assert by_class(instance).count == 3


def test_ranks_that_pins_name_in_other_blocks_are_not_equal() -> None:
    """A pin puts one block on rank 0 and a dearer one on rank 1: they may not be swapped."""
    plain = built([[at(ANY, 1), at(ANY, 9)], at(ANY, 4)], machines=[[0, 1, 2]])
    assert equal_ranks(lower(plain, plain.allowed)) == [[0, 1, 2]]
    pinned = replace(plain, pins=(Pin(0, 0, ((0,), (1,))),))
    assert equal_ranks(lower(pinned, pinned.allowed)) == []
    assert by_class(pinned).count == 3


def test_the_current_plan_tells_ranks_apart_where_moves_are_limited() -> None:
    """Rank 1 holds the table now: it is like no other once staying matters."""
    free = built([at(ANY, 1)], machines=[[0, 1, 2]], current=[Current(0, 0, ((1,),))])
    limited = replace(free, max_moved_tables=0)
    assert equal_ranks(lower(free, free.allowed)) == [[0, 1, 2]]
    assert equal_ranks(lower(limited, limited.allowed)) == [[0, 2]]


def test_uneven_shards_tell_ranks_apart() -> None:
    """The last rank's smaller shard makes it unlike the others."""
    uneven = Block(Where.EVERY_RANK, [Shard({}, [5], repeat=2), Shard({}, [1])])
    instance = built([uneven], machines=[[0, 1, 2]])
    assert equal_ranks(lower(instance, instance.allowed)) == [[0, 1]]


def candidates(*tables: dict[str, tuple[Where, int]]) -> Candidates:
    """Tables on two ranks; each option is one block of shards of a cost."""
    instance = built([{name: at(where, cost, hbm=1) for name, (where, cost) in table.items()}
                      for table in tables], hbm=9)  # fmt: skip
    return lower(instance, instance.allowed)


RARE = {"even": (Where.EVERY_RANK, 1), "whole": (Where.ANY_RANK, 90)}
USUAL = {"even": (Where.EVERY_RANK, 9), "whole": (Where.ANY_RANK, 8)}
SMALL = {"whole": (Where.ANY_RANK, 3)}
EVEN = {"even": (Where.EVERY_RANK, 50)}


@pytest.mark.parametrize(
    ("tables", "anchor"),
    [
        ((RARE, USUAL, SMALL), 1),
        ((SMALL, RARE, EVEN), 0),
        ((EVEN, RARE), 1),
        ((EVEN, EVEN), None),
    ],
)
def test_anchor(tables: tuple[dict[str, tuple[Where, int]], ...], anchor: int | None) -> None:
    """The anchor has the dearest shard of the tables' cheapest options, which plans use most; if
    none of these chooses a rank, of any option."""
    assert anchor_table(candidates(*tables)) == anchor


def three_ranks(count: int = 1, **rooms: int | list[int]) -> Instance:
    """A large table and a small one, free among three ranks of two machines."""
    return built([at(ANY, 9, count=count), at(ANY, 1)], machines=[[0, 1], [2]], **rooms)


@pytest.mark.parametrize(
    ("rooms", "classes"),
    [
        ({}, [[0, 1, 2]]),  # nothing refers to machines
        ({"ddr": 5}, [[0, 1]]),
        ({"hbm": [5, 4, 5]}, [[0, 2]]),
        ({"hbm": [5, 4, 3]}, []),
    ],
)
def test_interchangeable_ranks(rooms: dict[str, Any], classes: list[list[int]]) -> None:
    """Ranks of equal capacity are alike; if a resource is of machines, only within a machine."""
    instance = three_ranks(**rooms)
    found = equal_ranks(lower(instance, instance.allowed))
    assert sorted(sorted(map(int, each)) for each in found) == classes


def test_an_ordered_model_keeps_one_of_equal_plans() -> None:
    """The first rank holds most of the large table: two shards on ranks 1 and 2 break the order,
    on 0 and 1 they keep it; the small table may lie anywhere."""
    instance = three_ranks(count=2)
    model = build(instance, by_rank(instance), Parts(ordered=True))
    for ranks, broken in (([1, 2], [("order", 0, 1)]), ([0, 1], []), ([0, 2], [("order", 1, 2)]),
                          ([0, 0], []), ([2, 2], [("order", 1, 2)])):  # fmt: skip
        values = encode(model, placed(range(2), ranks, [2]))
        assert values is not None
        assert [row for row in broken_rows(model, values) if row[0] == "order"] == broken


def test_renaming_moves_all_tables_alike() -> None:
    """Ranks 2, 2, 1 hold the large table: they become 0, 0, 1, and the small one goes along."""
    instance = three_ranks(count=3)
    found = renamed(lower(instance, instance.allowed), placed(range(2), [1, 2, 2], [1]))
    assert sorted(found.ranks[0][0]) == [0, 0, 1]
    assert list(found.ranks[1][0]) == [1]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_a_renamed_plan_costs_the_same(instance: Instance) -> None:
    """The optimum, renamed, passes the check at the same objective."""
    truth = brute_force(instance)
    assume(truth.placement is not None and instance.num_tables > 0 and not instance.current)
    assert truth.placement is not None
    found = renamed(lower(instance, instance.allowed), truth.placement)
    verdict = check(instance, found)
    assert verdict.feasible
    assert verdict.objectives[instance.objective.value] == truth.objective
