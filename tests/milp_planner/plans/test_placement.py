"""Outcomes become plans that people can read: which shard holds which rows and columns, and where.

A placed table as JSON.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from formulations.result.check import compute_loads
from formulations.result.outcome import StoppedBy, found, nothing
from formulations.result.placement import Placement
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.placement import PlacedTable, Plan, decode
from milp_planner.pricing import price
from tests.milp_planner.pricing.build import cluster, model

Chosen = dict[str, list[list[int]]]


def plan_of(
    site: Cluster, tables: list[dict[str, Any]], chosen: list[tuple[str, list[list[int]]]]
) -> Plan:
    """A plan with the named options on the given ranks."""
    options = price(model(*tables), site)
    instance = compile_instance(options)
    picks = [instance.option_index(t, name) for t, (name, _) in enumerate(chosen)]
    ranks = [[np.array(block, dtype=np.int64) for block in blocks] for _, blocks in chosen]
    placement = Placement(np.array(picks, dtype=np.int64), ranks)
    outcome = found(instance, "test", placement, StoppedBy.EXHAUSTED)
    return decode(options, instance, outcome)


def test_a_column_wise_table() -> None:
    """Every rank has every row and a quarter of the columns."""
    plan = plan_of(cluster(), [{"dim": 128}], [("column_wise:4/HBM_ONLY", [[3, 3, 0, 7]])])
    table = plan.table("t0")
    assert (table.sharding_type, table.mode, table.kernel) == ("column_wise", "HBM_ONLY", "fused")
    assert (table.column_shards, table.column_width, table.cache_ratio) == (4, 32, 1)
    shards = plan.shards("t0")
    assert [s.rank for s in shards] == [3, 3, 0, 7]
    assert [s.columns for s in shards] == [(0, 32), (32, 64), (64, 96), (96, 128)]
    assert {s.rows for s in shards} == {(0, 1000)}


def test_a_row_wise_table_with_a_short_last_block() -> None:
    """1,000 rows over six ranks: blocks of 167, the last of 165."""
    site = cluster(1, 6)
    plan = plan_of(site, [{}], [("row_wise/CACHING/0.3", [list(range(6))])])
    shards = plan.shards("t0")
    assert shards[0].rows == (0, 167)
    assert shards[5].rows == (835, 1000)
    assert shards[0].use["hbm"] > shards[5].use["hbm"]
    assert plan.table("t0").kernel == "fused_uvm_caching"
    assert plan.table("t0").cache_ratio == Fraction(3, 10)


def test_table_row_wise_and_grid_count_inside_their_machine() -> None:
    """Rows follow the local position; the columns of a grid follow the machine."""
    tables = [{"dim": 128}, {"dim": 128}]
    chosen = [
        ("table_row_wise/HBM_ONLY", [[4, 5, 6, 7]]),
        ("grid_shard:2/HBM_ONLY", [[4, 5, 6, 7, 0, 1, 2, 3]]),
    ]
    plan = plan_of(cluster(2, 4), tables, chosen)
    assert [s.rows for s in plan.shards("t0")] == [(0, 250), (250, 500), (500, 750), (750, 1000)]
    grid = plan.shards("t1")
    assert [s.rows for s in grid[:4]] == [s.rows for s in grid[4:]]
    assert [s.columns for s in grid] == [(0, 64)] * 4 + [(64, 128)] * 4


def test_a_dynamicemb_table_says_what_its_options_need() -> None:
    """Capacity, HBM for values, routing and fusion group; its routing rule scatters the rows."""
    dyn = {"kind": "dynamicemb", "rows": 8100, "optimizer": "adam"}
    plan = plan_of(cluster(), [dyn], [("row_wise/CACHING/0.3/roundrobin", [list(range(8))])])
    table = plan.table("t0")
    assert table.capacity_per_rank == 1024
    assert table.hbm_for_values == -(-1024 * 768 * 3 // 10)
    assert (table.dist_type, table.fusion_caching) == ("roundrobin", True)
    assert table.fusion_group is not None
    assert "caching=true" in table.fusion_group
    assert all(s.rows is None for s in plan.shards("t0"))
    limits = {**dyn, "dist_types": ["continuous"]}
    plan = plan_of(cluster(), [limits], [("row_wise/HOST_ONLY/continuous", [list(range(8))])])
    assert plan.shards("t0")[1].rows == (1013, 2026)
    assert plan.table("t0").hbm_for_values == 0


def test_pinned_shards_keep_their_order() -> None:
    """Blocks of one rank each are shards in the order of columns."""
    pin = {"sharding_type": "column_wise", "mode": "HBM_ONLY", "ranks": [5, 1]}
    chosen = [("column_wise:2/HBM_ONLY", [[5], [1]])]
    plan = plan_of(cluster(), [{"dim": 64, "constraints": {"pin": pin}}], chosen)
    assert [(s.rank, s.columns) for s in plan.shards("t0")] == [(5, (0, 32)), (1, (32, 64))]


def test_shards_add_up_to_the_loads() -> None:
    """Bytes and picoseconds of all shards are the loads that ``check`` finds on the ranks."""
    tables = [{"dim": 128}, {"kind": "dynamicemb"}, {"rows": 3}]
    chosen = [
        ("column_wise:2/CACHING/0.5", [[1, 2]]),
        ("row_wise/HYBRID/0.5/roundrobin", [list(range(8))]),
        ("row_wise/HBM_ONLY", [list(range(8))]),
    ]
    plan = plan_of(cluster(), tables, chosen)
    placement = plan.outcome.placement
    assert placement is not None
    loads = compute_loads(plan.instance, placement)
    cost, hbm = np.zeros((8, 5), dtype=np.int64), np.zeros(8, dtype=np.int64)
    for table in plan.tables:
        for shard in plan.shards(table.name):
            cost[shard.rank] += shard.cost
            hbm[shard.rank] += shard.use["hbm"]
    assert cost.tolist() == loads.cost.tolist()
    assert hbm.tolist() == loads.use[0].tolist()


def test_cpu_plans_have_no_uvm_kernel() -> None:
    """Without HBM the kernel is TorchRec's plain fused one."""
    plan = plan_of(cluster(hbm=0), [{}], [("table_wise/HOST_ONLY", [[2]])])
    assert plan.table("t0").kernel == "fused"


def test_no_placement_is_a_plan_without_tables() -> None:
    """An answer without a placement still carries inputs and Instance."""
    options = price(model({}), cluster())
    instance = compile_instance(options)
    plan = decode(options, instance, nothing("test", StoppedBy.TIME_LIMIT))
    assert plan.tables == ()
    assert plan.verdict is None


def test_the_verdict_is_the_checks() -> None:
    """Feasible, with the Instance's objective."""
    plan = plan_of(cluster(), [{}], [("table_wise/HBM_ONLY", [[0]])])
    assert plan.verdict is not None
    assert plan.verdict.feasible
    assert plan.verdict.objectives["step_time"] == plan.outcome.objective
    with pytest.raises(KeyError):
        plan.table("absent")


TABLE = {
    "name": "t0",
    "option": "row_wise/CACHING/1/3/roundrobin",
    "kind": "dynamicemb",
    "sharding_type": "row_wise",
    "mode": "CACHING",
    "kernel": "customized_kernel",
    "cache_ratio": "1/3",
    "dist_type": "roundrobin",
    "column_width": 64,
    "ranks": [[0, 1]],
}


def test_round_trip_keeps_exact_ratios() -> None:
    """One third stays one third; 0 and 1 are ratios too."""
    table = PlacedTable.from_dict(TABLE)
    assert table.cache_ratio == Fraction(1, 3)
    assert table.ranks == ((0, 1),)
    assert PlacedTable.from_dict(table.to_dict()) == table
    for ratio in ("0", "1"):
        assert PlacedTable.from_dict({**TABLE, "cache_ratio": ratio}).cache_ratio == int(ratio)


@pytest.mark.parametrize(
    "change", [{"mode": "MIXED"}, {"sharding_type": "diagonal"}, {"cache_ratio": "4/3"}, {"x": 1}]
)
def test_illegal_values_are_refused(change: dict[str, object]) -> None:
    """Unknown names and ratios out of range are errors."""
    with pytest.raises(BadInput):
        PlacedTable.from_dict({**TABLE, **change})
