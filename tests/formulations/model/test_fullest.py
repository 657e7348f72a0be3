"""The column that says how full the fullest place is."""

from __future__ import annotations

import pytest

from formulations.clock import Limits
from formulations.cpsat import solve_cpsat
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.model.build import build
from formulations.model.fullest import fullest
from formulations.model.partition import by_rank


def three_shards() -> Instance:
    """Shards of 5, 3 and 2 bytes on two ranks of 10."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 10)], "busiest_rank")
    for name, size in (("a", 5), ("b", 3), ("c", 2)):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": size}, [1])])])
    return builder.build()


@pytest.mark.parametrize(("low", "least"), [(0, 5), (7, 7)])
def test_the_least_fill(low: int, least: int) -> None:
    """5 on one rank, 3 + 2 on the other: 5 tenths of the capacity, or ``low`` if that is more."""
    instance = three_shards()
    model = build(instance, by_rank(instance))
    row = fullest(model, instance, [0], parts=10, low=low, high=10)
    assert (row.place, row.size, row.coefficient.tolist()) == (-1, 1, [1])
    model.linear.minimise(row.column, row.coefficient)
    answer = solve_cpsat(model.linear, Limits(seconds=20))
    assert answer.value == least
    names = {model.linear.name(r) for r in range(model.linear.num_rows)}
    assert {("fullest", "low"), ("fullest", "hbm", 0), ("fullest", "hbm", 1)} <= names
