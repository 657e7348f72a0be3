"""A warning names ranks that look even because each is charged the hottest rank's load."""

from __future__ import annotations

from typing import Any

from milp_planner import plan
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import charged_everywhere, hot_warnings

CLUSTER = {"name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": 4, "hbm": "80GiB",
           "ddr": "2TB", "interconnect": {"intra_machine": "450GB/s"}}  # fmt: skip


def planned(access: Any, sharding: str = "row_wise") -> Plan:
    """One TorchRec table with these statistics and this sharding type."""
    table = {"name": "t", "rows": 10_000, "dim": 64, "access": access,
             "constraints": {"sharding_types": sharding}}  # fmt: skip
    model = {"name": "m", "workload": {"batch_per_rank": 64}, "tables": [table]}
    found = plan(Model.from_dict(model), Cluster.from_dict(CLUSTER), formulation="greedy")
    assert found.tables
    return found


def test_unknown_hot_ids_are_told_with_their_load() -> None:
    """Half of all lookups go to one row: its rank has 1/2 + 1/2 · 1/4 of them, 2.5 times the
    mean."""
    known = {"kind": "top_ids", "ids": [{"share": 0.5}]}
    found = planned(known)
    assert abs(charged_everywhere(found)["t"] - 2.5) < 1e-6
    (warning,) = hot_warnings(found)
    assert "t (2.50 times the mean)" in warning and "look even" in warning


def test_what_is_known_or_even_needs_no_word() -> None:
    """No warning if the hot row's owner is known, nothing is hot, or no rows are split."""
    assert hot_warnings(planned({"kind": "top_ids", "ids": [{"id": 3, "share": 0.5}]})) == []
    assert hot_warnings(planned("unknown")) == []
    assert hot_warnings(planned({"kind": "zipf", "alpha": 1.2}, "table_wise")) == []


def test_the_price_is_what_the_sentence_says() -> None:
    """All four ranks take equally long; if the id is known, one takes 2.5 times the mean."""
    every = planned({"kind": "top_ids", "ids": [{"share": 0.5}]})
    named = planned({"kind": "top_ids", "ids": [{"id": 3, "share": 0.5}]})

    def looked_up(found: Plan) -> list[int]:
        assert found.verdict is not None and found.verdict.loads is not None
        return [int(v) for v in found.verdict.loads.cost[:, 0]]

    assert len(set(looked_up(every))) == 1
    assert len(set(looked_up(named))) > 1 and max(looked_up(named)) == looked_up(every)[0]
