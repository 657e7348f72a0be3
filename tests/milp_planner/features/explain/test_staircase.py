"""The staircase against enumeration, and its multipliers against the bound they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Settings, Status, solve
from milp_planner.errors import BadInput
from milp_planner.features.explain.memory import staircase, with_more
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import quick, small, truth

EXTRAS = (-4, -1, 2, 6)


@settings(max_examples=6, deadline=None)
@given(instance=small(), data=st.data())
def test_every_step_is_the_optimum_at_its_capacity(instance: Instance, data: st.DataObject) -> None:
    """Objective, bound and infeasibility of every step are those of enumeration there."""
    tier = data.draw(st.sampled_from([r.name for r in instance.resources]))
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info = staircase(instance, plan, tier, EXTRAS, quick())
    assert {s.extra for s in info.steps} >= {0}
    for step in info.steps:
        best = truth(with_more(instance, tier, step.extra)).objective
        assert step.objective == best
        assert step.status == ("infeasible" if best is None else "optimal")
        if best is not None and step.relaxed is not None:
            assert step.relaxed <= best


def test_the_headline_staircase_by_hand() -> None:
    """Two tables of HYBRID 9 (hbm 8, ddr 2) or CACHING 3 (hbm 4, ddr 10): 18, 12 and 6."""
    instance = two_modes(hbm=12, ddr=12)
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info = staircase(instance, plan, "ddr", (-8, -4, 8), quick())
    assert [(s.extra, s.objective) for s in info.steps] == [(-8, None), (-4, None), (0, 12), (8, 6)]
    assert info.steps[0].status == "infeasible"
    assert info.now == 12
    assert (info.tier, info.scope) == ("ddr", "machine")


def test_the_slope_is_the_price_of_a_byte_everywhere() -> None:
    """CACHING instead of HYBRID takes 8 bytes more of ddr and costs 6 less; hbm is not short."""
    instance = two_modes()
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    assert plan.certificate is not None
    slopes = [staircase(instance, plan, tier, (), quick()).slope for tier in ("ddr", "hbm")]
    assert slopes == [pytest.approx(-6 / 8), 0]


def test_equal_ends_need_no_solve_between() -> None:
    """Where both ends have the same proved objective, the middle was not solved."""
    instance = two_modes(hbm=100, ddr=100)
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info = staircase(instance, plan, "hbm", range(0, 50, 10), quick())
    assert {s.objective for s in info.steps} == {6}
    assert sum(s.seconds is not None for s in info.steps) <= 2


def test_an_unknown_tier_is_named() -> None:
    """The sentence lists the tiers there are."""
    instance = two_modes()
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    with pytest.raises(BadInput, match=r"'hbn'.*hbm"):
        staircase(instance, plan, "hbn", (1,), quick())


def test_what_the_plan_proved_is_not_asked_again() -> None:
    """An optimal plan's own step is optimal without a solve, with no time at all."""
    instance = two_modes()
    outcome = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    assert outcome.status == Status.OPTIMAL
    (step,) = staircase(instance, outcome, "hbm", [0], quick(0.0)).steps
    assert (step.status, step.bound, step.seconds) == ("optimal", outcome.objective, None)
