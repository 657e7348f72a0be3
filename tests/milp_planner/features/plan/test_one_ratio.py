"""Cached tables that meet in a kernel by the search's choice: what comes out is what runs."""

from __future__ import annotations

from typing import Any

import pytest

from formulations.evidence.verify import verify
from milp_planner import plan
from milp_planner import verify as verified
from milp_planner.inputs import Model
from milp_planner.integrations.replay.judge import judge
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import cache_warnings
from tests.milp_planner.integrations.exports import plans

COUNTED: dict[str, Any] = {"time_limit": 900, "work_limit": 20, "workers": 1}
CACHED = {"modes": ["CACHING"], "sharding_types": ["table_wise"]}


def tables(*ratios: list[float], **workload: Any) -> Model:
    """Cached whole tables, a row less each, each with some ratios, on any rank."""
    named = [
        {**plans.static(f"t{i}", 3000 - i), "constraints": {**CACHED, "cache_ratios": each}}
        for i, each in enumerate(ratios)
    ]
    made = plans.model(*named)
    return made.model_copy(update={"workload": made.workload.model_copy(update=workload)})


def answer(model: Model, ranks: int = 2, hbm: str = "80GiB") -> Plan:
    """Its plan, which verifies."""
    found = plan(model, plans.cluster(1, ranks, hbm), formulation="cpsat", **COUNTED)
    assert verify(found.instance, found.outcome).ok
    return found


def test_tables_that_would_meet_at_two_ratios_are_kept_apart() -> None:
    """Three tables of ratios 0.3, 0.3 and 0.5 on two ranks: the third is alone, though two of
    unlike ratios on a rank may be as cheap; the export is exact."""
    found = answer(tables([0.3], [0.3], [0.5]))
    at = [placed.ranks[0][0] for placed in found.tables]
    assert at[0] == at[1] != at[2]
    assert judge(found, "torchrec")[0].exact and not cache_warnings(found)


def test_tables_that_must_meet_have_one_ratio() -> None:
    """Of three tables on two ranks two meet, at a ratio that both have; the bound is of all."""
    found = answer(tables([0.3, 0.4], [0.4, 0.5], [0.4, 0.6]))
    assert judge(found, "torchrec")[0].exact
    outcome = found.outcome
    assert outcome.objective is not None and outcome.bound is not None
    assert outcome.bound <= outcome.objective


def test_where_no_plan_has_one_ratio_the_export_says_what_runs() -> None:
    """Three tables of three ratios on two ranks: two meet, and TorchRec averages."""
    found = answer(tables([0.3], [0.5], [0.7]))
    judgement, _ = judge(found, "torchrec")
    assert not judgement.exact and cache_warnings(found)


def test_free_fusion_restricts_nothing() -> None:
    """Where the workload says that each table has its own cache."""
    found = answer(tables([0.3], [0.5], [0.7], fusion="free"))
    assert "one_ratio" not in found.outcome.detail


@pytest.mark.parametrize("ratios", [([0.3], [0.3, 0.5]), ([0.3, 0.5], [0.3, 0.5])])
def test_against_every_plan_that_runs(ratios: tuple[list[float], ...]) -> None:
    """On one rank the plan costs as much as the best one with one ratio, which a workload with
    that ratio alone has."""
    found = answer(tables(*ratios, [0.3, 0.5]), hbm="80GiB")
    one = [
        answer(tables(*[[ratio]] * 3)) for ratio in (0.3, 0.5) if all(ratio in r for r in ratios)
    ]
    best = min(each.outcome.objective or 0 for each in one)
    assert found.outcome.objective is not None and found.outcome.objective <= best
    assert judge(found, "torchrec")[0].exact


@pytest.mark.parametrize("price", [None, "1us/GB"])
def test_a_re_plan_separates_what_lies_together_at_two_ratios(price: str | None) -> None:
    """Also with a price on moves: the plan, its cost with the price and its bounds hold."""
    named = [
        {**plans.static(name, 3000, dim), "constraints": {**CACHED, "cache_ratios": [ratio]}}
        for name, dim, ratio in (("t0", 512, 0.3), ("t1", 128, 0.3), ("t2", 128, 0.5))
    ]
    made = plans.model(*named)
    free = made.model_copy(update={"workload": made.workload.model_copy(update={"fusion": "free"})})
    start = answer(free)
    assert start.table("t1").ranks == start.table("t2").ranks
    found = plan(
        made, plans.cluster(1, 2, "80GiB"), formulation="cpsat", **COUNTED,
        start=start, move_cost=price,
    )  # fmt: skip
    assert judge(found, "torchrec")[0].exact and verified(found).ok
    assert found.table("t1").ranks != found.table("t2").ranks
    assert "one ratio" in found.outcome.note or "cache" in found.outcome.note
