"""A solve ends as soon as its plan is certified to the requested gap, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formulations import Instance, Settings, StoppedBy, solve
from formulations.evidence.verify import verify
from formulations.result.check import check
from formulations.result.outcome import certified_gap, near_enough, within_gap
from formulations.settings import News
from milp_planner.plans.compile import compile_for
from scenarios import catalog

GAP = 0.4


@pytest.fixture(scope="module")
def instance() -> Instance:
    """Thirty tables on eight ranks: no formulation proves the optimum in seconds."""
    model = catalog.find_model("generated:tables=30,seed=3,kind=torchrec")
    return compile_for(model, catalog.find_cluster("8xh100"), "step_time").instance


@pytest.mark.parametrize(
    ("formulation", "workers"),
    [("auto", 1), ("auto", 2), ("cpsat", 1), pytest.param("scale", 1, marks=pytest.mark.slow)],
)
def test_it_stops_there(instance: Instance, formulation: str, workers: int) -> None:
    """The solve stops long before its limit, with an accepted certificate within the gap; on the
    way the caller hears of the certified bound and of plans that pass the check."""
    told: list[News] = []
    settings = Settings(
        time_limit=300, workers=workers, gap=GAP, polish=False, on_progress=told.append
    )
    outcome = solve(instance, formulation, settings)
    gap = certified_gap(outcome)
    assert outcome.stopped_by is StoppedBy.GAP and gap is not None and 0 < gap <= GAP
    assert outcome.seconds < 250 and verify(instance, outcome).ok
    if formulation == "auto":  # greedy's plan and the linear program suffice, before any long turn
        assert outcome.detail["work"] < 2
    plans = [(p.objective, p.placement) for p in told if p.placement is not None]
    for objective, placement in plans:
        assert placement is not None
        verdict = check(instance, placement)
        assert verdict.feasible and verdict.objectives["step_time"] == objective
    assert min(objective or 0 for objective, _ in plans) == outcome.objective
    if formulation != "cpsat":
        assert max(p.certified or 0 for p in told) == outcome.certified_bound


def test_a_gap_that_was_not_reached_is_refuted(instance: Instance) -> None:
    """``verify`` refutes a stop by ``gap`` that the settings or the certificate do not support."""
    settings = Settings(time_limit=300, workers=2, gap=GAP, polish=False)
    outcome = solve(instance, "auto", settings)
    asked: list[object] = [1e-9, None, True, float("nan")]
    for gap in asked:
        claims = verify(instance, outcome.with_(settings={**outcome.settings, "gap": gap})).claims
        assert "stopped by" in [c.name for c in claims if c.ok is False]
    nothing = replace(outcome, certificate=None, certified_bound=None)
    assert not verify(instance, nothing).ok


def test_what_was_given_up_for_goals_does_not_count(instance: Instance) -> None:
    """The gap counts from the best plan before the goals: by hand, 100 over 96, not 110."""
    settings = Settings(time_limit=20, workers=1, gap=GAP, polish=False)
    outcome = solve(instance, "greedy", settings).with_(objective=110, certified_bound=96)
    assert not near_enough(outcome, 0.05) and near_enough(outcome.with_(before_goals=100), 0.05)


def test_no_gap_is_none(instance: Instance) -> None:
    """A gap of 0 stops nothing, even where plan and bound meet; a gap needs certificates."""
    assert not within_gap(10, 10, 0.0) and within_gap(10, 9, 0.1) and not within_gap(10, 8, 0.1)
    assert not within_gap(None, 8, 0.1) and not within_gap(8, None, 0.1)
    bare = Settings(gap=0.1, certificate=False)
    assert bare.gap_asked == 0.0 and "gap" not in bare.describe()
    assert Settings(gap=0.1).describe()["gap"] == 0.1
