"""Columns and the rows that place the shards of a candidate, counted by hand.

Options, machines and ranks of tables, read from a solution.
"""

import numpy as np
import pytest

from formulations.instance import Instance, Where
from formulations.instance.build import Block, Shard
from formulations.instance.lowering import lower
from formulations.model.build import build
from formulations.model.columns import Columns, Table, add_columns, choose_one
from formulations.model.linear import LinearModel
from formulations.model.partition import Partition, by_machine, by_rank
from formulations.model.placements import chosen_machines, chosen_options, encode
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
from tests.formulations.model.solved import pooled


def one_table(block: Block) -> Instance:
    """A table with one option of one block."""
    return built([block], machines=MACHINES)


def columns_of(block: Block, partition: Partition | None = None) -> Columns:
    """The columns of a table with one option of one block, by rank unless said otherwise."""
    instance = one_table(block) if partition is None else partition.instance
    candidates = lower(instance, np.ones(1, dtype=bool))
    return add_columns(LinearModel(), candidates, partition or by_rank(instance))


def families(columns: Columns) -> list[object]:
    """Family of every row."""
    return [columns.model.name(row)[0] for row in range(columns.model.num_rows)]


ONE, TWO = Shard({}, [1]), Shard({}, [2])


@pytest.mark.parametrize(
    ("block", "upper", "rows"),
    [
        # the choice alone: its shards go where they must
        (at(EVERY, 1), [1], []),
        (Block([3, 1], [ONE, TWO]), [1], []),
        (at(Where.CLUSTER, 1, count=2), [1], []),
        (Block(ANY, [ONE], among=[2]), [1], []),
        # a count of shards on each of four ranks; the counts add up to the number of shards
        (at(ANY, 1), [1, 1, 1, 1, 1], ["place"]),
        (at(ANY, 1, count=3), [1, 3, 3, 3, 3], ["place"]),
        (at(ANY, 1, count=3, distinct=True), [1, 1, 1, 1, 1], ["place"]),
        # two kinds of distinct shards: at most one of them on each rank
        (Block(ANY, [ONE, TWO], 2, distinct=True), [1] * 9, ["place"] * 2 + ["room"] * 4),
        # how many times each machine is taken
        (at(MACHINE, 1), [1, 1, 1], ["machine"]),
        (at(MACHINE, 1, count=2, distinct=False), [1, 2, 2], ["machine"]),
        # which machine, and then how many on each of its ranks
        (at(INSIDE, 1, count=2), [1, 1, 1, 2, 2, 2, 2], ["machine", "place", "place"]),
    ],
)
def test_columns_by_hand(block: Block, upper: list[int], rows: list[str]) -> None:
    """Upper limits of the columns and families of the rows, kind of place by kind of place."""
    columns = columns_of(block)
    assert columns.model.upper.tolist() == upper
    assert families(columns) == rows
    assert columns.owners.tolist() == [0] * len(upper)


def test_ranks_in_one_cell_need_no_columns() -> None:
    """With all ranks pooled every shard lies in the only cell, so the choice is the only column."""
    for block, shards in ((at(ANY, 1, count=3), 3), (at(MACHINE, 1), 2)):
        columns = columns_of(block, pooled(one_table(block)))
        assert columns.model.num_columns == 1
        assert (columns.terms.cell.tolist(), columns.terms.times.tolist()) == ([0], [shards])


def test_closed_ranks_take_nothing() -> None:
    """Only open ranks have a column; where too few are open the candidate is forbidden."""
    block = at(ANY, 1, count=2, distinct=True)
    for free, upper in (([1, 1, 0, 0], [1, 1, 1]), ([1, 0, 0, 0], [0])):
        partition = by_rank(one_table(block), np.asarray(free, dtype=bool))
        assert columns_of(block, partition).model.upper.tolist() == upper
    for where in (ANY, INSIDE):
        block = at(where, 1, count=2)
        partition = by_rank(one_table(block), np.zeros(4, dtype=bool))
        assert columns_of(block, partition).model.upper.tolist() == [0]


def test_one_option_a_table() -> None:
    """The two options of a table add up to one; those of another table are not counted."""
    instance = built([dict.fromkeys("xy", at(EVERY, 1)), at(EVERY, 1)], machines=MACHINES)
    candidates = lower(instance, np.ones(3, dtype=bool))
    columns = add_columns(LinearModel(), candidates, by_rank(instance))
    choose_one(columns, np.asarray([0, 1]))
    matrix = columns.model.matrix()
    assert matrix.column.tolist() == [0, 1, 2] and matrix.start.tolist() == [0, 2, 3]
    assert matrix.low.tolist() == matrix.high.tolist() == [1, 1]
    assert [columns.model.name(row) for row in range(2)] == [("option", 0), ("option", 1)]


def test_a_table_of_arrays_repeats_integers() -> None:
    """Added parts are joined column by column; an unknown name is an AttributeError."""
    table = Table(("a", "b"))
    assert table.a.tolist() == []
    table.add([1, 2], 7)
    table.add(3, [8])
    assert (table.a.tolist(), table.b.tolist()) == ([1, 2, 3], [7, 7, 8])
    with pytest.raises(AttributeError, match="c"):
        _ = table.c


def four_tables() -> Instance:
    """On two machines of two ranks: one shard, two shards, a whole machine, every rank."""
    blocks = at(ANY, 4), at(ANY, 3, count=2), at(MACHINE, 2), at(EVERY, 1)
    return built(blocks, machines=MACHINES)


PLAN = placed(range(4), [3], [0, 2], [2, 3], range(4))


def test_machines_of_tables() -> None:
    """Machine 1 for the single shard and the whole machine; −1 where there are several or all."""
    instance = four_tables()
    for partition in (by_rank(instance), by_machine(instance)):
        model = build(instance, partition)
        values = encode(model, PLAN)
        assert values is not None
        assert chosen_machines(model, values).tolist() == [1, -1, 1, -1]


def test_pooled_machines_are_not_told_apart() -> None:
    """With all ranks in one cell, shards that choose a rank or lie on all have no machine."""
    instance = four_tables()
    model = build(instance, pooled(instance))
    values = encode(model, PLAN)
    assert values is not None
    assert chosen_machines(model, values)[[0, 1, 3]].tolist() == [-1, -1, -1]


def test_options_of_tables() -> None:
    """Every table's option is read; if a table has none, the result is None."""
    instance = four_tables()
    model = build(instance, by_rank(instance))
    values = encode(model, PLAN)
    assert values is not None
    found = chosen_options(model, values)
    assert found is not None and found.tolist() == [0, 1, 2, 3]
    values[model.columns.x[0]] = 0
    assert chosen_options(model, values) is None
