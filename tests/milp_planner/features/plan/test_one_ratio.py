"""Cached tables that meet in a kernel by the search's choice: what comes out is what runs."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Placement, Settings, Status, solve
from formulations.evidence.verify import verify
from formulations.result.check import check
from milp_planner import plan
from milp_planner import verify as verified
from milp_planner.features.explain.axes import memories_of
from milp_planner.features.plan.doubts import doubts
from milp_planner.features.plan.one_ratio import as_it_runs, asked, clashing
from milp_planner.features.plan.shortage import advice, shortage_of
from milp_planner.features.plan.tables import tables_of
from milp_planner.features.plan.verdict import verdict_of
from milp_planner.inputs import Model
from milp_planner.integrations.replay.judge import judge
from milp_planner.plans.compile import RULE, memories
from milp_planner.plans.forced import without_ratio
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import cache_warnings
from milp_planner.pricing import price
from milp_planner.pricing.shared_caches import Caches
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import ANY, EVERY, at, built
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
    unlike ratios on a rank may be as cheap; the export is exact, and no plan that runs is better.
    """
    found = answer(tables([0.3], [0.3], [0.5]))
    at = [placed.ranks[0][0] for placed in found.tables]
    assert at[0] == at[1] != at[2]
    assert judge(found, "torchrec")[0].exact and not cache_warnings(found)
    assert found.status == "optimal"


def test_tables_that_must_meet_have_one_ratio(tmp_path: Path) -> None:
    """Of three tables on two ranks two meet, at a ratio that both have, and that is proved best;
    from a file, too, and whoever changes its rules is found out."""
    found = answer(tables([0.3, 0.4], [0.4, 0.5], [0.4, 0.6]))
    assert judge(found, "torchrec")[0].exact and found.status == "optimal"
    path = found.save(tmp_path / "plan.json")
    assert verified(path).ok
    document = json.loads(path.read_text())
    document["outcome"]["detail"]["one_ratio"].pop()
    path.write_text(json.dumps(document))
    assert [c.name for c in verified(path).claims if c.ok is False] == ["pricing"]
    document["outcome"]["detail"]["one_ratio"] = [[[]], 1]
    path.write_text(json.dumps(document))
    assert not verified(path).ok


def test_rules_are_no_memory() -> None:
    """Neither the verdict, nor tables, nor questions about memory show them."""
    found = answer(tables([0.3], [0.3], [0.5]))
    assert len(memories(found.instance)) < len(found.instance.resources)
    assert [*memories_of(found.instance)] == ["hbm", "ddr"]
    placement = found.outcome.placement
    assert placement is not None
    shown = repr((found, found.shards("t0"), tables_of(found.instance, placement)))
    assert RULE not in shown + repr(verdict_of(found.instance, found.outcome))


@pytest.mark.parametrize("ratios", [[[0.3], [0.5]], [[0.3, 0.4], [0.4, 0.5], [0.3, 0.5]]])
def test_without_a_common_ratio_the_refusal_names_the_tables(ratios: list[list[float]]) -> None:
    """On one rank, where they share a cache, before and after solving; not on two."""
    made = tables(*ratios, [0.3, 0.5])
    found = answer(made, ranks=1)
    shortage, unlike = shortage_of(found.outcome.detail), without_ratio(price(made, found.cluster))
    assert found.status == "infeasible" and shortage is not None and unlike is not None
    (doubt,) = doubts(made, plans.cluster(1, 1, "80GiB"), profile="h100")
    assert doubt.field == f"tables[{len(ratios) - 1}]"
    for said in (doubt.message, "\n".join(advice(shortage, "ps"))):
        assert unlike[0] in said and "t0 (0.3" in said and f"t{len(ratios)} (" not in said
    assert not doubts(made, plans.cluster(1, 2, "80GiB"), profile="h100")
    other = made.model_copy(
        update={"workload": made.workload.model_copy(update={"fusion": "free"})}
    )
    assert not doubts(other, plans.cluster(1, 1, "80GiB"), profile="h100")


def test_where_no_plan_has_one_ratio_the_export_says_what_runs() -> None:
    """Three tables of three ratios on two ranks: two meet, and TorchRec averages, also to a ratio
    finer than a plan may state."""
    found = answer(tables([0.3], [0.5], [0.7]))
    judgement, _ = judge(found, "torchrec")
    assert not judgement.exact and cache_warnings(found)
    found = answer(tables([0.3], [0.31], [0.32]))
    judgement, ran = judge(found, "torchrec")
    assert not judgement.exact and all(0.3 <= table.cache_ratio <= 0.32 for table in ran.tables)


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
    assert found.outcome.detail["one_ratio"]


@st.composite
def cached(draw: st.DrawFn) -> tuple[Instance, Caches]:
    """Two to four tables on two or three ranks, each with options of two kernels and three ratios:
    whole, on every rank, or cut into two; and some without a cache."""
    ranks, options, named = draw(st.integers(2, 3)), [], list[tuple[str, Fraction] | None]()
    for _ in range(draw(st.integers(2, 4))):
        table = {}
        for number in range(draw(st.integers(1, 3))):
            level, kind = draw(st.integers(0, 3)), draw(st.sampled_from("wwwre"))
            where, count = (EVERY, 1) if kind == "e" else (ANY, 2 if kind == "r" else 1)
            cost = draw(st.integers(1, 9))
            table[f"o{number}"] = at(where, cost, count=count, distinct=False, hbm=level + 1)
            named.append((kind, Fraction(level, 4)) if level else None)
        options.append(table)
    machines, hbm = [range(ranks)], draw(st.integers(4, 12))
    objective = draw(st.sampled_from(["total", "busiest_rank"]))
    return built(options, objective, machines, hbm=hbm), Caches.named(named)


@settings(max_examples=60, deadline=None)
@given(cached(), st.booleans())
def test_an_optimum_is_one_of_the_plans_that_run(case: tuple[Instance, Caches], few: bool) -> None:
    """Against every plan with one ratio wherever tables meet, with all rules from the start or
    with those that plans broke: no bound is above the best, and whatever is optimal is one."""
    instance, caches = case
    own = Settings(time_limit=900, work_limit=2, workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("milp_planner.features.plan.one_ratio.FEW", 100 if few else 0)
        found = as_it_runs(instance, caches, own, "cpsat", lambda i, s: solve(i, "cpsat", s))
    best = min(_running(instance, caches), default=None)
    if best is None:
        assert found.placement is None or clashing(instance, caches, found.placement)
        return
    assert found.placement is not None and found.objective is not None
    assert not clashing(instance, caches, found.placement) and found.objective >= best
    assert (found.bound or 0) <= best and (found.certified_bound or 0) <= best
    assert found.status != Status.OPTIMAL or found.objective == best
    assert verify(asked(SimpleNamespace(instance=instance, caches=caches), found.detail), found).ok


def _running(instance: Instance, caches: Caches) -> list[int]:
    """The objective of every plan that fits and has one ratio wherever tables meet."""
    places = [
        [(o, ranks) for o in instance.options_of(t) for ranks in table_placements(instance, o)]
        for t in range(instance.num_tables)
    ]
    found = []
    for chosen in product(*places):
        options = np.asarray([option for option, _ in chosen])
        plan = Placement(options, [[np.asarray(r) for r in ranks] for _, ranks in chosen])
        verdict = check(instance, plan)
        if verdict.feasible and _one_ratio(caches, chosen):
            found.append(verdict.objectives[instance.objective.value])
    return found


def _one_ratio(caches: Caches, chosen: tuple[Any, ...]) -> bool:
    ratios: dict[tuple[int, int], set[int]] = {}
    for option, blocks in chosen:
        for rank in {rank for ranks in blocks for rank in ranks}:
            if caches.kernel[option] >= 0:
                here = ratios.setdefault((int(caches.kernel[option]), rank), set())
                here.add(int(caches.level[option]))
    return all(len(levels) == 1 for levels in ratios.values())
