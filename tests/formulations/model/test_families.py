"""Three tests for each family of constraints: nothing to limit, infeasible, just feasible.

Neighbourhoods: some tables and ranks open, the rest stays; all open is the exact model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.cpsat import Found
from formulations.instance import Current, Instance, Pin, Where
from formulations.instance.build import Block, Shard
from formulations.model.parts import Parts
from formulations.model.placements import decode, encode
from formulations.result.check import check
from formulations.result.placement import Placement
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import (
    ANY,
    EVERY,
    INSIDE,
    MACHINE,
    MACHINES,
    at,
    built,
    placed,
)
from tests.formulations.model.solved import broken_rows, solved
from tests.formulations.strategies import instances


def value(tables: Sequence[Any], **more: Any) -> int | None:
    """Optimum of the exact model on two machines of two ranks; None where it is proved that there
    is no plan."""
    _, answer = solved(built(tables, machines=MACHINES, **more))
    assert answer.status in (Found.OPTIMAL, Found.INFEASIBLE)
    return None if answer.value is None else int(answer.value)


@pytest.mark.parametrize(
    ("room", "capacity", "expected"),
    [
        ("hbm", 100, 3), ("hbm", [6, 6, 6, 5], None), ("hbm", [6, 6, 6, 6], 3),
        ("hbm", [12, 0, 0, 12], 6), ("ddr", 100, 3), ("ddr", [12, 11], None),
        ("ddr", [12, 12], 3), ("ddr", [24, 0], 6), ("net", 100, 3),
        ("net", 23, None), ("net", 24, 3),
    ],
)  # fmt: skip
def test_capacity(room: str, capacity: int | list[int], expected: int | None) -> None:
    """Four shards of 6 and cost 3, against what each place holds, to the byte."""
    assert value([at(ANY, 3, **{room: 6})] * 4, **{room: capacity}) == expected


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
    tables = [
        {f"o{level}": (at(EVERY, 1 + 5 * level), ("group", level)) for level in own}
        for own in levels
    ]
    assert value(tables) == expected


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
    assert value([at(INSIDE, 10, count=2)], pins=[Pin(0, 0, ranks)]) == expected


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
    current = [Current(table, table, ((0,),)) for table in range(4)]
    four = [at(ANY, 5, move_bytes=6 + table) for table in range(4)]
    limits = {"max_moved_tables": tables, "max_moved_bytes": size}
    assert value(four, current=current, **limits) == expected


def test_a_current_place_that_is_gone_counts_as_a_move() -> None:
    """A table whose current option is gone must move; where none may move, there is no plan."""
    current = [Current(0, -1, ((0,),))]
    assert value([at(ANY, 5)], current=current, max_moved_tables=0) is None
    assert value([at(ANY, 5)], current=current, max_moved_tables=1) == 5


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (at(MACHINE, 4, count=2), 4),
        (at(MACHINE, 4, count=3), None),
        (at(MACHINE, 4, count=3, distinct=False), 8),
        (at(ANY, 4, count=4, distinct=True), 4),
        (at(ANY, 4, count=5, distinct=True), None),
        (at(ANY, 4, count=5), 8),
        (at(INSIDE, 4, count=3, distinct=True), None),
        (at(INSIDE, 4, count=3), 8),
        (Block(ANY, [Shard({}, [4]), Shard({}, [9])], count=2, among=[2]), 13),
        (Block([3, 1], [Shard({}, [4]), Shard({}, [7])]), 7),
        (at(Where.CLUSTER, 4, count=2), 0),
    ],
)
def test_places(block: Block, expected: int | None) -> None:
    """Every kind of place, distinct or not, on two machines of two ranks."""
    assert value([block]) == expected


LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def opened(placement: Placement, tables: object, **rest: object) -> Parts:
    """A neighbourhood of a plan, without cuts."""
    wanted = np.asarray(tables, dtype=np.int64)
    return Parts(base=placement, tables=wanted, cuts=False, **rest)  # type: ignore[arg-type]


@LOOSE
@given(instances(), st.data())
def test_a_part_is_solved_to_its_optimum(instance: Instance, data: st.DataObject) -> None:
    """With any tables open on all ranks the optimum is found; the others keep their options."""
    truth = brute_force(instance)
    if truth.placement is None or not instance.num_tables:
        return
    tables = data.draw(st.sets(st.integers(0, instance.num_tables - 1), min_size=1))
    model, answer = solved(instance, None, opened(truth.placement, sorted(tables)))
    assert answer.values is not None and answer.status == Found.OPTIMAL
    hint = encode(model, truth.placement)
    assert hint is not None and broken_rows(model, hint) == []
    plan = decode(model, answer.values)
    verdict = check(instance, plan)
    assert verdict.feasible, verdict.violations
    value = verdict.objectives[instance.objective.value]
    assert value == truth.objective == answer.value
    closed = [t for t in range(instance.num_tables) if t not in tables]
    assert (plan.options[closed] == truth.placement.options[closed]).all()


def test_closed_moves_count() -> None:
    """The one move allowed is used by a closed table, so the open one must stay where it was."""
    current = [Current(0, 0, ((0,),)), Current(1, 1, ((1,),))]
    instance = built([at(ANY, 1)] * 2, current=current, max_moved_tables=1)
    model, answer = solved(instance, None, opened(placed(range(2), [1], [1]), [1]))
    assert answer.value == 2 and answer.values is not None
    assert decode(model, answer.values).ranks[1][0].tolist() == [1]
