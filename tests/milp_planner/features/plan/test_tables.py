"""Tables of a plan against uses and costs counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from formulations import Block, InstanceBuilder, Placement, Shard, Where
from milp_planner.features.plan.tables import Facets, draw_tables, facets_of, tables_of
from tests.milp_planner.features.example import example, placement
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.features.small import MODEL, cluster


def test_every_table_by_hand() -> None:
    """Use is summed over shards, its maximum is on one rank, and the cost is that of the slowest
    rank."""
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
    """Of 60 tables the 40 costliest are shown in their order; the rest is counted."""
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


@pytest.mark.parametrize(
    ("option", "facets"),
    [
        ("row_wise/CACHING/0.3/roundrobin", Facets("row_wise", "CACHING", "0.3", "roundrobin")),
        ("column_wise:2x64/HBM_ONLY", Facets("column_wise:2x64", "HBM_ONLY", "", "")),
        ("row_wise/HYBRID/1/3/continuous", Facets("row_wise", "HYBRID", "1/3", "continuous")),
        ("row_wise/HBM_ONLY/roundrobin/beside_caching",
         Facets("row_wise", "HBM_ONLY", "", "roundrobin beside_caching")),
        ("table_row_wise/HOST_ONLY/4_ranks", Facets("table_row_wise", "HOST_ONLY", "", "4_ranks")),
        ("table_wise/fused", None), ("o", None), ("row_wise/CACHING", None),
    ],
)  # fmt: skip
def test_facets(option: str, facets: Facets | None) -> None:
    """Names of priced options are taken apart; other names stay whole."""
    assert facets_of(option) == facets


def test_every_priced_name_comes_apart() -> None:
    """Every option name that pricing enumerates is taken apart and put together again."""
    from milp_planner.pricing import price

    options = price(MODEL, cluster(machines=2))
    for name in options.names:
        facets = facets_of(name)
        assert facets is not None
        parts = [facets.sharding, facets.mode, facets.ratio, *facets.routing.split()]
        assert "/".join(filter(None, parts)) == name


def test_large_plans_still_fit() -> None:
    """Long names, two tiers and all parts fit 100 columns."""
    builder = InstanceBuilder(
        [range(8)], ["p"], [("hbm", "rank", 2**40), ("ddr", "machine", 2**50)]
    )
    for i in range(3):
        builder.add_table(f"a_very_long_table_name_with_number_{i}")
        shard = Shard({"hbm": 123_456_789_012, "ddr": 987_654_321_012}, [123_456_789_012])
        builder.add_option("table_column_wise:16x128/CACHING/0.35/hash_roundrobin",
                           [Block(Where.ANY_RANK, [shard], count=3)])  # fmt: skip
    placed = Placement(np.arange(3), [[np.array([0, 4, 7])] for _ in range(3)])
    text = drawn(draw_tables(tables_of(builder.build(), placed)))
    assert max(len(line) for line in text.splitlines()) <= 100
    assert all(figure in text for figure in ("0.35", "344.9 GiB", "2.69 TiB", "123.5 ms"))
