"""Tables of a plan against uses and costs counted by hand."""

from __future__ import annotations

import numpy as np

from formulations import Block, InstanceBuilder, Placement, Shard, Where
from milp_planner.report.tables import tables_of
from milp_planner.report.terminal.tables import draw_tables
from tests.milp_planner.report.example import example, placement
from tests.milp_planner.report.test_ranks import drawn


def test_every_table_by_hand() -> None:
    """Use adds up over shards, most is one rank's, cost is the slowest rank's."""
    a, b, c = tables_of(example(), placement()).rows
    assert a.used == {"hbm": 40, "ddr": 20, "pool": 0} and a.most["hbm"] == 10 and a.cost == 7
    assert b.used["hbm"] == 70 and b.ranks == ((2,),) and b.cost == 21
    assert c.used == {"hbm": 0, "ddr": 0, "pool": 8} and c.ranks == ((),) and c.cost == 4


def test_two_shards_on_one_rank_add_up() -> None:
    """A column-wise table with both shards on one rank uses twice as much there."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 100)])
    builder.add_table("t")
    builder.add_option("cw", [Block(Where.ANY_RANK, [Shard({"hbm": 10}, [5])], count=2)])
    row = tables_of(builder.build(), Placement(np.array([0]), [[np.array([1, 1])]])).rows[0]
    assert row.most == {"hbm": 20} and row.cost == 10


def test_drawing_folds_long_lists_to_the_costliest() -> None:
    """Of 60 tables the 40 costliest are shown, in their order, and the rest is counted."""
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 10**6)])
    for i in range(60):
        builder.add_table(f"table_{i}_with_a_name_far_longer_than_its_column")
        builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({"hbm": i}, [i])])])
    info = tables_of(
        builder.build(), Placement(np.arange(60), [[np.array([0])] for _ in range(60)])
    )
    text = drawn(draw_tables(info))
    assert "… and 20 cheaper tables" in text and "table_19" not in text and "table_20" in text
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "table_19" in drawn(draw_tables(info, everything=True))
