"""Sensitivity with a turning point known by hand: HYBRID wins once its x_eff exceeds CACHING's.

Verdicts and regrets against enumeration at both prices.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Settings
from formulations.capacity.budget import Budget
from formulations.result.check import check, value_of
from milp_planner.errors import BadInput
from milp_planner.features.explain.sensitivity import (
    Judge,
    SensitivityInfo,
    judged,
    regret_of,
    sensitivity,
    summary_of,
)
from milp_planner.plans.placement import Plan
from tests.milp_planner.features.explain.priced import CACHING, HYBRID, planned
from tests.milp_planner.features.explain.quick import first_of_each, quick, small, truth

FLIP = CACHING / HYBRID - 1
"""HYBRID 12% better, or CACHING 10.7% worse."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The plan with CACHING, which is slightly better."""
    return planned()


@pytest.fixture(scope="module")
def info(plan: Plan) -> SensitivityInfo:
    """The answer for ±20% on every parameter."""
    return sensitivity(plan, quick(120), draws=12)


def test_only_the_two_curves_matter(plan: Plan, info: SensitivityInfo) -> None:
    """Bandwidths scale both modes alike, and a parameter that no option reads changes no price."""
    assert plan.tables[0].mode == "CACHING"
    found = {one.parameter.name: one for one in info.singles}
    flips = {
        name: [side.end.verdict for side in (one.lower, one.higher) if side is not None]
        for name, one in found.items()
    }
    assert flips["hybrid"] == ["same", "changes"]
    assert flips["caching"] == ["changes", "same"]
    assert flips["hbm"] == flips["host_link"] == ["same", "same"]
    assert flips["ddr"] == flips["uvm_caching"] == []


def test_the_flip_is_found_to_a_sixteenth_of_the_spread(info: SensitivityInfo) -> None:
    """The change that makes both modes equal lies between *same at* and *changes at*."""
    found = {one.parameter.name: one for one in info.singles}
    up, down = found["hybrid"].higher, found["caching"].lower
    assert up.same_at <= FLIP < up.changes_at <= up.same_at + 0.2 / 16 + 1e-12
    assert down.changes_at < HYBRID / CACHING - 1 <= down.same_at


def test_regret_is_the_ratio_of_the_bandwidths(plan: Plan, info: SensitivityInfo) -> None:
    """Time is bytes over x_eff·HBM + (1 − x_eff)·link, so the bytes cancel."""
    higher = next(one for one in info.singles if one.parameter.name == "hybrid").higher

    def bandwidth(x: float) -> float:
        return x * plan.profile.hbm + (1 - x) * plan.profile.host_link

    expected = bandwidth(1.2 * HYBRID) / bandwidth(CACHING) - 1
    assert higher.end.regret == pytest.approx((expected, expected), rel=1e-3)
    assert higher.end.tables == 1


def test_every_draw_changes_where_the_curves_cross(plan: Plan, info: SensitivityInfo) -> None:
    """Two factors of a draw determine its verdict; the seed determines the draws."""
    assert len(info.draws) == info.asked == 12
    for trial in info.draws:
        crosses = trial.factors["hybrid"] * HYBRID > trial.factors["caching"] * CACHING
        assert trial.verdict == ("changes" if crosses else "same")
    assert info.summary.changes + info.summary.same == 12
    assert 0 < info.summary.changes < 12
    again = sensitivity(plan, quick(), draws=2)
    assert [t.factors for t in again.draws] == [t.factors for t in info.draws[:2]]


def test_a_plan_that_is_not_the_best_is_told_so(plan: Plan) -> None:
    """A plan with HYBRID, where CACHING is better: no change, but a better plan is found."""
    best = plan.outcome.placement
    hybrids = [i for i, name in enumerate(plan.instance.option_names) if "HYBRID" in name]
    others = [replace(best, options=np.array([option])) for option in hybrids]
    poor = next(each for each in others if check(plan.instance, each).feasible)
    outcome = plan.outcome.with_(placement=poor, bound=None)
    info = sensitivity(replace(plan, outcome=outcome), quick(120), draws=0)
    assert info.better == plan.outcome.objective == info.bound
    assert info.now > info.better


def test_no_time_leaves_names_not_verdicts(plan: Plan) -> None:
    """If it is stopped before it begins, it tries nothing and claims nothing."""
    budget = Budget(Settings(time_limit=60, workers=1), "cpsat")
    budget.settings.stop.set()
    info = sensitivity(plan, budget, draws=3)
    assert info.singles == info.draws == ()
    assert "hbm" in info.untried


def test_wrong_arguments_are_refused(plan: Plan) -> None:
    """One sentence each."""
    with pytest.raises(BadInput, match="draws"):
        sensitivity(plan, quick(), draws=-1)
    with pytest.raises(BadInput, match="spread"):
        sensitivity(plan, quick(), assumed=2.0)
    with pytest.raises(BadInput, match="places nothing"):
        sensitivity(replace(plan, outcome=plan.outcome.with_(placement=None)), quick())


def _again(instance: Instance, seed: int) -> Instance:
    """The instance with new costs, and new uses of one resource, as skew may change buffers."""
    rng = np.random.default_rng(seed)
    use = instance.shard_use.copy()
    use[:, 0] = np.maximum(0, use[:, 0] + rng.integers(-1, 2, len(use)))
    return replace(
        instance, shard_cost=rng.integers(0, 9, instance.shard_cost.shape), shard_use=use
    )


@settings(max_examples=25, deadline=None)
@given(instance=small(max_tables=2), seed=st.integers(0, 999))
def test_the_verdict_on_an_optimal_plan_is_the_truth(instance: Instance, seed: int) -> None:
    """Verdict (same, changes or unfit) and regret are those of enumerating both Instances."""
    plan = truth(instance).placement
    assume(plan is not None)
    other = _again(instance, seed)
    best, kept = truth(other).objective, value_of(other, plan)
    found = Judge(instance, plan).judge(other, {"x": 2.0}, quick(), 1.0)
    assert (found.kept, found.objective) == (kept, best)
    if kept is None:
        assert (found.verdict, found.regret) == ("unfit", None)
        assert found.status == ("infeasible" if best is None else "optimal")
        return
    assert found.verdict == ("same" if kept == best else "changes")
    assert found.regret == pytest.approx(((kept - best) / max(1, best),) * 2)
    assert found.tables is not None
    assert found.tables == 0 or kept > best


@settings(max_examples=25, deadline=None)
@given(instance=small(max_tables=2), seed=st.integers(0, 999))
def test_a_poor_plan_is_not_blamed_on_prices(instance: Instance, seed: int) -> None:
    """At its own prices any plan is *same* or *open*: a better plan there is not due to prices."""
    plan = first_of_each(instance)
    assume(plan is not None and value_of(instance, plan) is not None)
    judge = Judge(instance, plan)
    judge.judge(_again(instance, seed), {}, quick(), 1.0)
    found = judge.judge(instance, {}, quick(), 1.0)
    best = truth(instance).objective
    assert found.verdict == ("same" if judge.now == best else "open")
    assert judge.better == (best if best != judge.now else None)


def test_regret_without_a_proof_is_an_interval() -> None:
    """Kept 12, best known 10, bound 8: between 20% and 50%; without a bound, no upper end."""
    assert regret_of(12, 10, 8) == (0.2, 0.5)
    assert regret_of(12, 10, None) == (0.2, None)
    assert regret_of(12, 10, 0) == (0.2, None)
    assert regret_of(None, 10, 8) is None


def test_a_summary_counts_and_takes_the_worst() -> None:
    """Five trials by hand; one unknown upper end makes the largest unknown."""
    trials = [
        judged({}, 10, 10, 10, False), judged({}, 12, 10, 10, True), judged({}, 11, 10, 10, True),
        judged({}, None, 10, 10, False), judged({}, 11, 11, 5, False),
    ]  # fmt: skip
    found = summary_of(trials)
    assert (found.draws, found.same, found.changes, found.open, found.unfit) == (5, 1, 2, 1, 1)
    assert found.least == pytest.approx((0.05, 0.2))
    assert found.most == pytest.approx((0.15, 1.2))
    unknown = summary_of([*trials, judged({}, 11, 11, None, False)])
    assert unknown.most[1] is None
    assert summary_of([]).least == (None, None)
