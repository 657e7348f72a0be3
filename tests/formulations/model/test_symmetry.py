"""Which ranks are interchangeable, by which table they are ordered, and how plans are renamed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from formulations import Block, Instance, InstanceBuilder, Placement, Shard, Where
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import lower
from formulations.model.build import build
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import encode
from formulations.model.symmetry import anchor_table, equal_ranks, renamed
from formulations.result.check import check
from tests.formulations.brute_force import brute_force
from tests.formulations.model.solved import broken_rows
from tests.formulations.strategies import instances


def candidates(*tables: dict[str, tuple[Where, int]]) -> Candidates:
    """Tables on two ranks; each option is one block of shards of a cost."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 9)], "busiest_rank")
    for number, options in enumerate(tables):
        builder.add_table(str(number))
        for name, (where, cost) in options.items():
            builder.add_option(name, [Block(where, [Shard({"hbm": 1}, [cost])])])
    instance = builder.build()
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


def three_ranks(*resources: tuple[str, str, int | list[int]], count: int = 1) -> Instance:
    """A large table and a small one, free among three ranks of two machines."""
    builder = InstanceBuilder([[0, 1], [2]], ["p"], resources, "busiest_rank")
    for name, cost, times in (("large", 9, count), ("small", 1, 1)):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [cost])], times)])
    return builder.build()


@pytest.mark.parametrize(
    ("resources", "classes"),
    [
        ((), [[0, 1, 2]]),  # nothing refers to machines
        ((("ddr", "machine", 5),), [[0, 1]]),
        ((("hbm", "rank", [5, 4, 5]),), [[0, 2]]),
        ((("hbm", "rank", [5, 4, 3]),), []),
    ],
)
def test_interchangeable_ranks(
    resources: tuple[tuple[str, str, int | list[int]], ...], classes: list[list[int]]
) -> None:
    """Ranks of equal capacity are alike; if a resource is of machines, only within a machine."""
    instance = three_ranks(*resources)
    found = equal_ranks(lower(instance, instance.allowed))
    assert sorted(sorted(map(int, each)) for each in found) == classes


def at(*ranks: list[int]) -> Placement:
    """Tables of one block each on given ranks."""
    return Placement(np.arange(len(ranks)), [[np.asarray(each)] for each in ranks])


def test_an_ordered_model_keeps_one_of_equal_plans() -> None:
    """The first rank holds most of the large table: two shards on ranks 1 and 2 break the order,
    on 0 and 1 they keep it; the small table may lie anywhere."""
    instance = three_ranks(count=2)
    model = build(instance, by_rank(instance), Parts(ordered=True))
    for ranks, broken in (([1, 2], [("order", 0, 1)]), ([0, 1], []), ([0, 2], [("order", 1, 2)]),
                          ([0, 0], []), ([2, 2], [("order", 1, 2)])):  # fmt: skip
        values = encode(model, at(ranks, [2]))
        assert values is not None
        assert [row for row in broken_rows(model, values) if row[0] == "order"] == broken


def test_renaming_moves_all_tables_alike() -> None:
    """Ranks 2, 2, 1 hold the large table: they become 0, 0, 1, and the small one goes along."""
    instance = three_ranks(count=3)
    found = renamed(lower(instance, instance.allowed), at([1, 2, 2], [1]))
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
