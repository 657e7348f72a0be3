"""The staircase against enumeration, and its multipliers against the bound that they imply."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Instance, Settings, Status, solve
from formulations.capacity.budget import Budget
from formulations.result.check import check
from formulations.result.outcome import StoppedBy, found
from milp_planner.errors import BadInput
from milp_planner.features.explain.draw import draw_staircase, staircase_notes
from milp_planner.features.explain.memory import staircase, with_more
from milp_planner.plans.compile import compile_for
from scenarios.catalog import find_cluster, find_model
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import quick, small, truth
from tests.milp_planner.features.plan.test_ranks import drawn

EXTRAS = (-4, -1, 2, 6)


@settings(max_examples=6, deadline=None)
@given(instance=small(), data=st.data())
def test_every_step_is_the_optimum_at_its_capacity(instance: Instance, data: st.DataObject) -> None:
    """Every step's objective, bound and infeasibility are those of enumeration."""
    tier = data.draw(st.sampled_from([r.name for r in instance.resources]))
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info, _ = staircase(instance, plan, tier, EXTRAS, quick())
    assert {s.extra for s in info.steps} >= {0}
    for step in info.steps:
        best = truth(with_more(instance, tier, step.extra)).objective
        assert step.objective == best
        assert step.status == ("infeasible" if best is None else "optimal")
        if best is not None and step.relaxed is not None:
            assert step.relaxed <= best


def test_the_headline_staircase_by_hand() -> None:
    """Two tables of HYBRID 9 (hbm 8, ddr 2) or CACHING 3 (hbm 4, ddr 10) cost 18, 12 and 6."""
    instance = two_modes(hbm=12, ddr=12)
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info, _ = staircase(instance, plan, "ddr", (-8, -4, 8), quick())
    assert [(s.extra, s.objective) for s in info.steps] == [(-8, None), (-4, None), (0, 12), (8, 6)]
    assert info.steps[0].status == "infeasible"
    assert info.now == 12
    assert (info.tier, info.scope) == ("ddr", "machine")


def test_the_slope_is_the_price_of_a_byte_everywhere() -> None:
    """CACHING takes 8 bytes more of ddr than HYBRID and costs 6 less; hbm is not short."""
    instance = two_modes()
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    assert plan.certificate is not None
    slopes = [staircase(instance, plan, tier, (), quick())[0].slope for tier in ("ddr", "hbm")]
    assert slopes == [pytest.approx(-6 / 8), 0]


def test_equal_ends_need_no_solve_between() -> None:
    """If both ends have the same proved objective, no step between them is solved."""
    instance = two_modes(hbm=100, ddr=100)
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info, _ = staircase(instance, plan, "hbm", range(0, 50, 10), quick())
    assert {s.objective for s in info.steps} == {6}
    assert sum(s.seconds is not None for s in info.steps) <= 2


def test_an_unknown_tier_is_named() -> None:
    """The sentence lists the known tiers."""
    instance = two_modes()
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    with pytest.raises(BadInput, match=r"'hbn'.*hbm"):
        staircase(instance, plan, "hbn", (1,), quick())


def test_what_the_plan_proved_is_not_asked_again() -> None:
    """An optimal plan's own step is optimal without a solve, even with no time left."""
    instance = two_modes()
    outcome = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    assert outcome.status == Status.OPTIMAL
    (step,) = staircase(instance, outcome, "hbm", [0], quick(0.0))[0].steps
    assert (step.status, step.bound, step.seconds) == ("optimal", outcome.objective, None)


def test_more_memory_is_never_worse() -> None:
    """A plan that fits less memory also counts for more, even if no time is left to search; a
    better plan for the present memory is returned with the answer."""
    instance = two_modes(hbm=100, ddr=12)
    poor = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info, _ = staircase(instance, poor, "ddr", range(-8, 13, 4), quick())
    values = [s.objective for s in info.steps if s.objective is not None]
    assert values == [18, 18, 12, 12, 6, 6]
    slack = two_modes(hbm=100, ddr=100)
    known = found(slack, "cpsat", poor.placement, StoppedBy.TIME_LIMIT)
    info, better = staircase(slack, known, "hbm", (-90, 8), quick())
    assert info.now == poor.objective and better is not None
    assert check(slack, better).objectives["total"] == 6


def test_steps_are_shown_with_what_is_certified() -> None:
    """With less memory than now, the plan's certified bound holds; with more, the bound of its
    multipliers."""
    instance = two_modes(hbm=100, ddr=12)
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info, _ = staircase(instance, plan, "ddr", (-2, 8), quick())
    assert plan.certified_bound == 12
    less, now = (s.certified for s in info.steps[:2])
    assert now == 12 and less is not None and 12 <= less <= 18
    last = info.steps[-1]
    assert last.certified == last.relaxed and last.certified <= 6
    certified = [s.certified for s in info.steps]
    assert certified == sorted(certified, reverse=True)
    text = drawn(draw_staircase(info))
    assert "certified ≥" in text and "really reach" not in text and "after reservations" in text


def test_an_open_step_is_told_as_open() -> None:
    """If no time is left, the table does not claim that nothing better exists."""
    instance = two_modes(hbm=12, ddr=12)
    plan = solve(instance, "cpsat", Settings(time_limit=30, workers=1))
    info, _ = staircase(instance, plan, "ddr", (8,), quick(0.0))
    assert info.steps[-1].status == "feasible"
    assert "a longer search may find a better one" in " ".join(staircase_notes(info))


MODELS = (
    ("kuairand-27k", "8xh100"),
    ("criteo-kaggle", "1xa10"),
    pytest.param("dlrmv4-yambda5b", "8xmi350x", marks=pytest.mark.slow),
)


@pytest.mark.parametrize(("model", "cluster"), MODELS)
def test_no_step_is_above_what_plan_finds(model: str, cluster: str) -> None:
    """Three shipped models: with 10 GB less or more, a fresh search of the same time finds no
    better plan than the step."""
    instance = compile_for(find_model(model), find_cluster(cluster), "step_time").instance
    asked = Settings(time_limit=6, workers=2, polish=False)
    plan = solve(instance, "auto", asked)
    extras = (-(10**10), 10**10)
    info, _ = staircase(instance, plan, "hbm", extras, Budget(replace(asked, time_limit=30)))
    for step in info.steps:
        fresh = solve(with_more(instance, "hbm", step.extra), "auto", asked)
        assert step.objective is not None or fresh.objective is None
        if step.objective is not None and fresh.objective is not None:
            assert step.objective <= fresh.objective
