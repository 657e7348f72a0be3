"""Which plans say that hit ratios come from outside the formulas' region.

A warning names ranks that look even because each is charged the hottest rank's load.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.simulator import one_table as simulated_table
from benchmarks.simulator.whole import simulate_plan
from milp_planner import plan
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import (
    charged_everywhere,
    hit_ratio_of,
    hit_sources,
    hit_warnings,
    hot_warnings,
)
from milp_planner.pricing import price
from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.job import job_of, option_columns
from milp_planner.pricing.lookup import hits_of
from milp_planner.pricing.profile import load_profile

CLUSTER = {"name": "c", "machines": 1, "ranks_per_machine": 2, "hbm": "80GiB", "ddr": "2TB",
           "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip


def planned(tables: list[tuple[str, float, float]], profile: str = "a10", **work: Any) -> Plan:
    """A plan of these tables, given as (mode, alpha, x)."""
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
    """Formulas need no warning; the simulated table and unchecked cases get one each."""
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


def test_prices_that_no_hit_ratio_enters_need_no_word(tmp_path: Path) -> None:
    """Curves over the cache ratio need no warning; with a prefetch, misses count again."""
    level = {"over": "cache_ratio", "points": [[0.0, 0.2]], "origin": "made up"}
    own = load_profile("h100").to_dict() | {"name": "own", "caching": level, "hybrid": level}
    (tmp_path / "own.json").write_text(json.dumps(own))
    tables = [("CACHING", 2.0, 0.2), ("HYBRID", 2.0, 0.2)]
    mine = str(tmp_path / "own.json")
    assert hit_sources(planned(tables, mine)) == {}
    assert hit_sources(planned(tables, mine, prefetch_pipeline=True)) == {"t0": "table"}


SMALL = [(mode, rows) for mode in ("HYBRID", "CACHING") for rows in (4_000, 10_000, 40_000)]


def small(ranks: int, strategy: str) -> Plan:
    """Tables of a few thousand rows at x 0.1, whose slots are a few buckets of 1024."""
    tables = [
        {"name": f"{mode}{rows}", "rows": rows, "dim": 16, "kind": "dynamicemb",
         "pooling_factor": 2, "access": {"kind": "zipf", "alpha": 0.9}, "score_strategy": strategy,
         "constraints": {"modes": mode, "cache_ratios": [0.1]}}
        for mode, rows in SMALL
    ]  # fmt: skip
    workload = {"batch_per_rank": 256 // ranks, "fusion": "free"}
    model = Model.from_dict({"name": "m", "workload": workload, "tables": tables})
    cluster = Cluster.from_dict({**CLUSTER, "profile": "a10", "ranks_per_machine": ranks})
    return plan(model, cluster, formulation="greedy")


@pytest.mark.parametrize("ranks", [1, 8])
@pytest.mark.parametrize("strategy", ["timestamp", "lfu"])
def test_small_tiers_hit_as_simulated(ranks: int, strategy: str) -> None:
    """Slots are rounded up to a bucket on every rank, which may be many times 0.1 of the rows."""
    for row in simulate_plan(small(ranks, strategy), 20, 0).tables:
        assert row.predicted_hit == pytest.approx(row.hit, abs=0.05), row.name
        assert row.hit_source == "formula"


def test_a_sample_of_rows_has_the_slots_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of 40,000 rows, sampled alike on all ranks, has the hit ratio of all rows."""
    monkeypatch.setattr(simulated_table, "MAX_ROWS", 20_000)
    rows = simulate_plan(small(8, "timestamp"), 20, 0).tables
    assert min(row.sampled for row in rows) == 0.5
    for row in rows:
        assert row.hit == pytest.approx(row.predicted_hit, abs=0.05), row.name


def test_prices_rest_on_the_hit_ratio_that_is_told() -> None:
    """Options are priced with the hit ratio that the simulator is compared with."""
    placed = small(8, "timestamp")
    job = job_of(placed.model, placed.cluster, placed.profile, links_of(placed.cluster))
    options = price(placed.model, placed.cluster)
    owners = np.repeat(np.arange(len(placed.tables)), np.diff(options.first))
    priced = hits_of(job, option_columns(options.choices, job.ranks, owners))
    for index, table in enumerate(placed.tables):
        option = options.index(index, table.option)
        assert (priced.ratio[option], priced.source[option]) == hit_ratio_of(placed, index)


FOUR_RANKS = {"name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": 4, "hbm": "80GiB",
           "ddr": "2TB", "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip


def planned_alone(access: Any, sharding: str = "row_wise") -> Plan:
    """One TorchRec table with these statistics and this sharding type."""
    table = {"name": "t", "rows": 10_000, "dim": 64, "access": access,
             "constraints": {"sharding_types": sharding}}  # fmt: skip
    model = {"name": "m", "workload": {"batch_per_rank": 64}, "tables": [table]}
    found = plan(Model.from_dict(model), Cluster.from_dict(FOUR_RANKS), formulation="greedy")
    assert found.tables
    return found


def test_unknown_hot_ids_are_told_with_their_load() -> None:
    """Half the lookups go to one row: that rank has 1/2 + 1/2 · 1/4 of them, 2.5 times the mean."""
    known = {"kind": "top_ids", "ids": [{"share": 0.5}]}
    found = planned_alone(known)
    assert abs(charged_everywhere(found)["t"] - 2.5) < 1e-6
    (warning,) = hot_warnings(found)
    assert "t (2.50 times the mean)" in warning and "look even" in warning


def test_what_is_known_or_even_needs_no_word() -> None:
    """No warning if the hot row's owner is known, nothing is hot, or no rows are split."""
    assert hot_warnings(planned_alone({"kind": "top_ids", "ids": [{"id": 3, "share": 0.5}]})) == []
    assert hot_warnings(planned_alone("unknown")) == []
    assert hot_warnings(planned_alone({"kind": "zipf", "alpha": 1.2}, "table_wise")) == []


def test_the_price_is_what_the_sentence_says() -> None:
    """All four ranks take equally long; if the id is known, one takes 2.5 times the mean."""
    every = planned_alone({"kind": "top_ids", "ids": [{"share": 0.5}]})
    named = planned_alone({"kind": "top_ids", "ids": [{"id": 3, "share": 0.5}]})

    def looked_up(found: Plan) -> list[int]:
        assert found.verdict is not None and found.verdict.loads is not None
        return [int(v) for v in found.verdict.loads.cost[:, 0]]

    assert len(set(looked_up(every))) == 1
    assert len(set(looked_up(named))) > 1 and max(looked_up(named)) == looked_up(every)[0]
