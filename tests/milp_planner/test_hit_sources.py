"""Which plans say that hit ratios come from outside the formulas' region."""

from __future__ import annotations

from typing import Any

from milp_planner.api import plan
from milp_planner.hit_sources import hit_sources, hit_warnings
from milp_planner.inputs import Cluster, Model
from milp_planner.placement import Plan

CLUSTER = {"name": "c", "machines": 1, "ranks_per_machine": 2, "hbm": "80GiB", "ddr": "2TB",
           "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip


def planned(tables: list[tuple[str, float, float]], profile: str = "a10", **work: Any) -> Plan:
    """Tables of (mode, alpha, x), each placed so."""
    rows = [
        {"name": f"t{i}", "rows": 10**6, "dim": 16, "kind": "dynamicemb", "pooling_factor": 1,
         "access": {"kind": "zipf", "alpha": alpha},
         "constraints": {"modes": mode, "cache_ratios": [x]}}
        for i, (mode, alpha, x) in enumerate(tables)
    ]  # fmt: skip
    workload = {"batch_per_rank": 64, "fusion": "free", **work}
    model = Model.from_dict({"name": "m", "workload": workload, "tables": rows})
    cluster = Cluster.from_dict({**CLUSTER, "profile": profile})
    return plan(model, cluster, formulation="greedy")


def test_only_what_is_outside_the_region_is_told() -> None:
    """Formulas need no word; the table and what nobody checked get one each."""
    found = planned([("HYBRID", 1.0, 0.2), ("CACHING", 2.0, 0.2), ("HYBRID", 1.0, 0.01)])
    assert hit_sources(found) == {"t0": "formula", "t1": "table", "t2": "unchecked"}
    table, unchecked = hit_warnings(found)
    assert table.endswith("from the simulator's table: t1")
    assert unchecked.endswith(": t2")
    assert hit_warnings(planned([("HYBRID", 1.0, 0.2)])) == []


def test_at_most_three_tables_are_named() -> None:
    """The others are counted."""
    (warning,) = hit_warnings(planned([("CACHING", 2.0, 0.2)] * 5))
    assert warning.endswith(": t0, t1, t2 and 2 more")


def test_prices_that_no_hit_ratio_enters_need_no_word() -> None:
    """The h100 curves are over other things; a prefetch makes misses count again."""
    tables = [("CACHING", 2.0, 0.2), ("HYBRID", 2.0, 0.2)]
    assert hit_sources(planned(tables, "h100")) == {}
    assert hit_sources(planned(tables, "h100", prefetch_pipeline=True)) == {"t0": "table"}
