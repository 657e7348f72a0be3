"""Largest-shard rows, by hand: they raise bounds and refute plans."""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.model.partition import by_class, by_machine
from formulations.model.parts import Parts
from tests.formulations.model.solved import pooled, solved


def base_and_big(capacity: int | None = None) -> Instance:
    """A load of 2 on each of two ranks, and one shard of 9."""
    resources = [] if capacity is None else [("hbm", "rank", capacity)]
    builder = InstanceBuilder([[0, 1]], ["p"], resources, "busiest_rank")
    use = {} if capacity is None else {"hbm": 2}
    builder.add_table("base")
    builder.add_option("o", [Block(Where.EVERY_RANK, [Shard(use, [2])])])
    builder.add_table("big")
    use = {} if capacity is None else {"hbm": 9}
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard(use, [9])])])
    return builder.build()


def test_the_largest_shard_lies_on_what_all_bear() -> None:
    """The bound is 2 + 9 = 11, where pooling alone gives 7."""
    instance = base_and_big()
    assert solved(instance, pooled(instance))[1].value == 11
    assert solved(instance, pooled(instance), Parts(cuts=False))[1].value == 7


def test_the_largest_shard_must_fit_beside_it() -> None:
    """11 a rank are enough; 10 are proved too few, although 20 on two ranks exceed the 13 used."""
    enough, less = base_and_big(11), base_and_big(10)
    assert solved(enough, by_class(enough))[1].status == "optimal"
    assert solved(less, by_class(less))[1].status == "infeasible"
    assert solved(less, by_class(less), Parts(cuts=False))[1].status == "optimal"


def test_what_lies_on_all_of_a_machine_is_part_of_the_base() -> None:
    """A shard of 5 lies beside a table-row-wise 3 on either machine: 8, where pooling gives 6."""
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [("hbm", "rank", 1)], "busiest_rank")
    for table in "ab":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ONE_MACHINE, [Shard({"hbm": 1}, [3])], 1)])
    builder.add_table("big")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])])])
    instance = builder.build()
    assert solved(instance, by_machine(instance))[1].value == 8
    assert solved(instance, by_machine(instance), Parts(cuts=False))[1].value == 6


def test_several_shards_of_a_kind_count_once() -> None:
    """Of four shards of 5 beside 3 on each rank, the row counts only one: the bound is 8."""
    builder = InstanceBuilder([[0, 1], [2, 3]], ["p"], [], "busiest_rank")
    builder.add_table("base")
    builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({}, [3])])])
    builder.add_table("cut")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])], count=4)])
    instance = builder.build()
    assert solved(instance, by_machine(instance))[1].value == 8


def test_the_cuts_are_as_tight_as_they_can_be() -> None:
    """At the optimum of 11 every largest-shard row is tight."""
    instance = base_and_big(11)
    model, answer = solved(instance)
    matrix = model.linear.matrix()
    assert answer.values is not None
    values = np.asarray(answer.values)
    for row in range(model.linear.num_rows):
        name = model.linear.name(row)
        if name[0] == "largest":
            part = slice(int(matrix.start[row]), int(matrix.start[row + 1]))
            activity = int(matrix.coefficient[part] @ values[matrix.column[part]])
            assert activity == matrix.high[row], name
