"""Three tests for each family of constraints: nothing to limit, infeasible, just feasible."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from formulations.cpsat import Found
from formulations.instance import Current, Instance, Pin, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.model.placements import decode
from tests.formulations.model.solved import solved

MACHINES = ([0, 1], [2, 3])


def builder(*resources: tuple[str, str, int | Sequence[int]]) -> InstanceBuilder:
    """Two machines of two ranks; the busiest rank counts."""
    return InstanceBuilder(MACHINES, ["p"], resources, "busiest_rank")


def value(instance: Instance) -> int | None:
    """Optimum of the exact model; None where it is proved that there is no plan."""
    _, answer = solved(instance)
    assert answer.status in (Found.OPTIMAL, Found.INFEASIBLE)
    return None if answer.value is None else int(answer.value)


@pytest.mark.parametrize(
    ("scope", "capacity", "expected"),
    [
        ("rank", 100, 3), ("rank", [6, 6, 6, 5], None), ("rank", [6, 6, 6, 6], 3),
        ("rank", [12, 0, 0, 12], 6), ("machine", 100, 3), ("machine", [12, 11], None),
        ("machine", [12, 12], 3), ("machine", [24, 0], 6), ("cluster", 100, 3),
        ("cluster", 23, None), ("cluster", 24, 3),
    ],
)  # fmt: skip
def test_capacity(scope: str, capacity: int | list[int], expected: int | None) -> None:
    """Four shards of 6 and cost 3, against what each place holds, to the byte."""
    made = builder(("r", scope, capacity))
    for table in range(4):
        made.add_table(f"t{table}")
        made.add_option("o", [Block(Where.ANY_RANK, [Shard({"r": 6}, [3])])])
    assert value(made.build()) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (((0, 1), (0, 1)), 2),  # both may take the cheap level
        (((0,), (1,)), None),  # one has only level 0, the other only level 1
        (((0, 1), (1,)), 12),  # the dear level is the one they share
    ],
)
def test_fusion(levels: Sequence[Sequence[int]], expected: int | None) -> None:
    """Two tables of one group on every rank, level 0 costs 1 and level 1 costs 6 a table."""
    made = builder()
    for table, own in enumerate(levels):
        made.add_table(f"t{table}")
        for level in own:
            shard = Shard({}, [1 + 5 * level])
            made.add_option(f"o{level}", [Block(Where.EVERY_RANK, [shard])], ("group", level))
    assert value(made.build()) == expected


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (None, 10),  # where they like
        (((0, 0),), 20),  # both shards on one rank
        (((0, 3),), None),  # not on one machine
        (((2, 3),), 10),
        (((3, 2),), 10),  # a multiset
    ],
)
def test_pins(ranks: tuple[tuple[int, ...], ...] | None, expected: int | None) -> None:
    """Two shards of cost 10 on the ranks of one machine, pinned to some ranks."""
    made = builder()
    made.add_table("t")
    made.add_option("o", [Block(Where.ANY_RANK_OF_ONE_MACHINE, [Shard({}, [10])], count=2)])
    assert value(made.build(pins=[Pin(0, 0, ranks)])) == expected


@pytest.mark.parametrize(
    ("tables", "size", "expected"),
    [
        (None, None, 5),  # spread over the ranks
        (0, None, 20),  # all stay on rank 0
        (None, 0, 20),
        (2, None, 10),
        (None, 13, 10),  # 6 + 7 bytes
        (None, 12, 15),
        (3, 100, 5),
    ],
)
def test_moves(tables: int | None, size: int | None, expected: int) -> None:
    """Four tables of cost 5 sit on rank 0; moving them takes 6, 7, 8 and 9 bytes."""
    made = builder()
    current = []
    for table in range(4):
        made.add_table(f"t{table}")
        block = Block(Where.ANY_RANK, [Shard({}, [5], move_bytes=6 + table)])
        current.append(Current(table, made.add_option("o", [block]), ((0,),)))
    limits = {"max_moved_tables": tables, "max_moved_bytes": size}
    assert value(made.build(current=current, **limits)) == expected  # type: ignore[arg-type]


def test_a_current_place_that_is_gone_counts_as_a_move() -> None:
    """A table whose current option is gone must move; where none may move, there is no plan."""
    made = builder()
    made.add_table("t")
    made.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])])])
    current = [Current(0, -1, ((0,),))]
    assert value(made.build(current=current, max_moved_tables=0)) is None
    assert value(made.build(current=current, max_moved_tables=1)) == 5


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (Block(Where.ONE_MACHINE, [Shard({}, [4])], count=2), 4),
        (Block(Where.ONE_MACHINE, [Shard({}, [4])], count=3), None),
        (Block(Where.ONE_MACHINE, [Shard({}, [4])], count=3, distinct=False), 8),
        (Block(Where.ANY_RANK, [Shard({}, [4])], count=4, distinct=True), 4),
        (Block(Where.ANY_RANK, [Shard({}, [4])], count=5, distinct=True), None),
        (Block(Where.ANY_RANK, [Shard({}, [4])], count=5), 8),
        (Block(Where.ANY_RANK_OF_ONE_MACHINE, [Shard({}, [4])], count=3, distinct=True), None),
        (Block(Where.ANY_RANK_OF_ONE_MACHINE, [Shard({}, [4])], count=3), 8),
        (Block(Where.ANY_RANK, [Shard({}, [4]), Shard({}, [9])], count=2, among=[2]), 13),
        (Block([3, 1], [Shard({}, [4]), Shard({}, [7])]), 7),
        (Block(Where.CLUSTER, [Shard({}, [4])], count=2), 0),
    ],
)
def test_places(block: Block, expected: int | None) -> None:
    """Every kind of place, distinct or not, on two machines of two ranks."""
    made = builder()
    made.add_table("t")
    made.add_option("o", [block])
    instance = made.build()
    assert value(instance) == expected
    if expected is not None:
        model, answer = solved(instance)
        assert answer.values is not None
        assert len(decode(model, answer.values).ranks[0]) == 1
