"""Verdicts and regrets against enumeration at both prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance
from formulations.result.check import value_of
from milp_planner.features.explain.sensitivity import Judge, judged, regret_of, summary_of
from tests.milp_planner.features.explain.quick import first_of_each, quick, small, truth


def _again(instance: Instance, seed: int) -> Instance:
    """The instance with new costs, and new uses of one resource, as a changed skew may change
    buffers."""
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
    assert plan is not None
    other = _again(instance, seed)
    best, kept = truth(other).objective, value_of(other, plan)
    found = Judge(instance, plan).judge(other, {"x": 2.0}, quick(), 1.0)
    assert (found.kept, found.objective) == (kept, best)
    if kept is None:
        assert (found.verdict, found.regret) == ("unfit", None)
        assert found.status == ("infeasible" if best is None else "optimal")
        return
    assert best is not None
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
    assert plan is not None
    judge = Judge(instance, plan)
    judge.judge(_again(instance, seed), {}, quick(), 1.0)
    found = judge.judge(instance, {}, quick(), 1.0)
    best = truth(instance).objective
    assert found.verdict == ("same" if judge.now == best else "open")
    assert judge.better == (best if best != judge.now else None)


def test_regret_without_a_proof_is_an_interval() -> None:
    """Kept 12, best known 10, bound 8: between 20% and 50%; without a bound there is no upper
    end."""
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
