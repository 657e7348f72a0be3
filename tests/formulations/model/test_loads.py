"""Rows of loads against the sums of the check, and the constants of closed tables.

The column that says how full the fullest place is.

Largest-shard rows, by hand: they raise bounds and refute plans.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from formulations.clock import Limits
from formulations.cpsat import solve_cpsat
from formulations.instance import Instance
from formulations.instance.lowering import lower
from formulations.model.build import build
from formulations.model.columns import add_columns
from formulations.model.fullest import fullest
from formulations.model.linear import LinearModel
from formulations.model.loads import SHORT, Loads, Row, collect, distinct, nothing_closed, rest_of
from formulations.model.partition import by_class, by_machine, by_rank
from formulations.model.parts import Parts
from formulations.model.placements import encode
from formulations.result.check import check, compute_loads
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, MACHINE, MACHINES, at, built, placed
from tests.formulations.model.solved import pooled, solved
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def value(row: Row, values: np.ndarray) -> int:
    """A row at given values of the columns."""
    return int(row.coefficient @ values[row.column])


@LOOSE
@given(instances())
def test_rows_are_the_loads_of_the_check(instance: Instance) -> None:
    """At a plan's values the rows give the check's loads, of each rank and of all together."""
    truth = brute_force(instance)
    assume(truth.placement is not None)
    assert truth.placement is not None
    model = build(instance, by_rank(instance))
    values = encode(model, truth.placement)
    found = check(instance, truth.placement).loads
    assert values is not None and found is not None
    loads, ranks = Loads(model.columns), np.arange(instance.num_ranks)
    for phase in range(len(instance.phases)):
        cost = instance.shard_cost[:, phase]
        rows, even = loads.rows(cost, ranks, np.ones_like(ranks)), loads.even(cost)
        carried = [value(even, values) + value(row, values) for row in rows]
        assert carried == found.cost[:, phase].tolist()
        assert [row.place for row in rows] == ranks.tolist()
        total = int(found.cost[:, phase].sum())
        assert value(loads.everything(cost, off=False), values) == total
        everything = loads.everything(cost)
        assert value(everything, values) == total + int(found.unplaced_cost[phase])
        if (everything.coefficient >= 0).all():
            assert loads.most(everything) >= value(everything, values)


def test_collect_drops_what_cancels() -> None:
    """Equal keys are summed; a sum of 0 is no term."""
    key, amount = collect(np.asarray([2, 1, 2, 1]), np.asarray([3, 5, -3, 1]))
    assert (key.tolist(), amount.tolist()) == ([1], [6])


def test_of_equal_rows_the_tightest_stays() -> None:
    """Of two ranks' equal rows the one with less room stays; a different row stays too."""
    one, other = np.ones(1, dtype=np.int64), np.full(1, 2, dtype=np.int64)
    rows = [Row(0, 1, one, one), Row(1, 1, one, one), Row(2, 1, one, other)]
    kept = distinct(rows, np.asarray([9, 7, 9]))
    assert [row.place for row in kept] == [1, 2]


@pytest.mark.parametrize("tables", [SHORT, SHORT + 1])
def test_what_every_rank_carries_is_a_column_where_it_is_long(tables: int) -> None:
    """Up to four terms stand in every row; five become a column that is their sum."""
    instance = built([at(EVERY, table + 1) for table in range(tables)])
    candidates = lower(instance, np.ones(tables, dtype=bool))
    columns = add_columns(LinearModel(), candidates, by_rank(instance))
    loads, cost = Loads(columns), instance.shard_cost[:, 0]
    rows = loads.rows(cost, np.arange(2), np.ones(2, dtype=np.int64))
    rows = loads.with_even(loads.even(cost), rows, ("peak",))
    values = np.ones(columns.model.num_columns, dtype=np.int64)
    total = tables * (tables + 1) // 2
    if tables <= SHORT:
        assert columns.model.num_rows == 0 and columns.model.num_columns == tables
    else:
        assert columns.model.name(0) == ("carried", "peak")
        assert int(columns.model.upper[-1]) >= total
        values[-1] = total
    assert [value(row, values) for row in rows] == [total, total]


@LOOSE
@given(instances())
def test_the_rest_is_what_closed_tables_put(instance: Instance) -> None:
    """With one table open, its loads and those of the closed tables add up to the plan's."""
    truth = brute_force(instance)
    assume(truth.placement is not None and instance.num_tables > 0)
    assert truth.placement is not None
    rest = rest_of(instance, truth.placement, np.asarray([0]))
    mine, whole = (compute_loads(instance, truth.placement, t) for t in ([0], None))
    assert (rest.cost + mine.cost).tolist() == whole.cost.tolist()
    assert (rest.off_cost + mine.unplaced_cost).tolist() == whole.unplaced_cost.tolist()
    for closed, own, all_use in zip(rest.use, mine.use, whole.use, strict=True):
        assert (closed + own).tolist() == all_use.tolist()
    groups = instance.option_group[truth.placement.options[1:]]
    assert set(rest.levels) == set(groups[groups >= 0].tolist())


def test_nothing_closed_is_nothing() -> None:
    """Without closed tables the rest is zeros of the right shapes."""
    rest = nothing_closed(built([], machines=[[0], [1]], phases="pq", hbm=5, net=5))
    assert rest.empty and rest.cost.shape == (2, 2) and rest.off_cost.tolist() == [0, 0]
    assert [use.tolist() for use in rest.use] == [[0, 0], [0]]
    assert (rest.levels, rest.moved, rest.moved_bytes) == ({}, 0, 0)


def three_shards() -> Instance:
    """Shards of 5, 3 and 2 bytes on two ranks of 10."""
    return built([at(ANY, 1, hbm=size) for size in (5, 3, 2)], hbm=10)


@pytest.mark.parametrize(("low", "least"), [(0, 5), (7, 7)])
def test_the_least_fill(low: int, least: int) -> None:
    """5 on one rank, 3 + 2 on the other: 5 tenths of the capacity, or ``low`` if that is more."""
    instance = three_shards()
    model = build(instance, by_rank(instance))
    row = fullest(model, instance, {0: instance.resources[0].capacity}, parts=10, low=low, high=10)
    assert (row.place, row.size, row.coefficient.tolist()) == (-1, 1, [1])
    model.linear.minimise(row.column, row.coefficient)
    answer = solve_cpsat(model.linear, Limits(seconds=20))
    assert answer.value == least
    names = {model.linear.name(r) for r in range(model.linear.num_rows)}
    assert {("fullest", "low"), ("fullest", "hbm", 0), ("fullest", "hbm", 1)} <= names


@pytest.mark.parametrize(("tables", "beyond"), [([1, 2], 2), ([1], 3), ([2], 4), ([], 6)])
def test_what_is_above_a_fill(tables: list[int], beyond: int) -> None:
    """All lie on rank 0, which is 6 tenths above 4; of the open tables all go, and 5 and 5, 7 and 3
    or 8 and 2 tenths are left."""
    instance, there = three_shards(), placed(range(3), [0], [0], [0])
    parts = Parts(base=there, tables=np.asarray(tables, dtype=np.int64))
    model = build(instance, by_rank(instance), parts)
    row = fullest(model, instance, {0: instance.resources[0].capacity}, parts=10, low=4)
    model.linear.minimise(row.column, row.coefficient)
    assert solve_cpsat(model.linear, Limits(seconds=20)).value == beyond


def base_and_big(capacity: int | None = None) -> Instance:
    """A load of 2 on each of two ranks, and one shard of 9."""
    base, big = ({} if capacity is None else {"hbm": use} for use in (2, 9))
    return built([at(EVERY, 2, **base), at(ANY, 9, **big)], hbm=capacity)


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
    instance = built([at(MACHINE, 3, hbm=1)] * 2 + [at(ANY, 5)], machines=MACHINES, hbm=1)
    assert solved(instance, by_machine(instance))[1].value == 8
    assert solved(instance, by_machine(instance), Parts(cuts=False))[1].value == 6


def test_several_shards_of_a_kind_count_once() -> None:
    """Of four shards of 5 beside 3 on each rank, the row counts only one: the bound is 8."""
    instance = built([at(EVERY, 3), at(ANY, 5, count=4)], machines=MACHINES)
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
