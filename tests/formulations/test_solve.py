"""The entry point: what is known of one instance never reaches another.

A solve ends as soon as its plan is certified to the requested gap, and says so.
"""

from dataclasses import replace

import numpy as np
import pytest

from formulations import InstanceError, Objective, Placement, Settings, Status, StoppedBy, solve
from formulations.capacity.budget import Budget
from formulations.evidence.verify import verify
from formulations.instance import Instance
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import certified_gap, near_enough, nothing, within_gap
from formulations.settings import Data, News, Runtime, Wishes
from milp_planner.plans.compile import compile_for
from scenarios import catalog
from tests.formulations.examples import two_modes
from tests.formulations.search.test_plans import eight_equal, tight


@pytest.fixture(scope="module")
def known() -> tuple[Placement, Certificate]:
    """A plan and a certificate of twelve tables."""
    outcome = solve(tight(), "auto", Settings(time_limit=10, workers=1))
    assert outcome.placement is not None and outcome.certificate is not None
    return outcome.placement, outcome.certificate


@pytest.mark.parametrize("objective", [Objective.TOTAL, Objective.STEP_TIME])
def test_multipliers_of_another_objective_are_not_used(
    objective: Objective, known: tuple[Placement, Certificate]
) -> None:
    """They name rows of costs that the other objective does not have; solving goes on without, to
    the same optimum as without them."""
    plan, prices = known
    other, asked = replace(tight(), objective=objective), Settings(time_limit=10, workers=1)
    outcome = solve(other, "auto", replace(asked, hint=plan, prices=prices))
    assert outcome.status == Status.OPTIMAL
    assert outcome.objective == solve(other, "auto", asked).objective


def test_multipliers_of_other_resources_are_not_used(known: tuple[Placement, Certificate]) -> None:
    """This instance has no memory at all."""
    outcome = solve(eight_equal(), "auto", Settings(time_limit=10, workers=1, prices=known[1]))
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 2000)


def test_a_question_about_another_instance_gets_no_data(
    known: tuple[Placement, Certificate],
) -> None:
    """A diagnosis has costs of its own, where neither plan nor multipliers mean anything."""
    plan, prices = known
    budget = Budget(Settings(time_limit=10, workers=1, hint=plan, prices=prices))
    assert budget.fits(tight())
    assert budget.fits(two_modes(1, 1)) is False


def test_a_hint_for_other_tables_is_refused() -> None:
    """Too few tables, and an option that belongs to another table."""
    eight = [[np.asarray([0])]] * 8
    with pytest.raises(InstanceError, match="it places 8 tables, the instance has 12"):
        solve(tight(), "auto", Settings(hint=Placement(np.arange(8), eight)))
    with pytest.raises(InstanceError, match="the option of table 't0' is not one of its own"):
        solve(eight_equal(), "auto", Settings(hint=Placement(np.arange(8)[::-1], eight)))


def test_settings_for_another_instance_keep_wishes_and_runtime(
    known: tuple[Placement, Certificate],
) -> None:
    """Only data goes."""
    plan, prices = known
    settings = Settings(time_limit=7.0, seed=3, hint=plan, prices=prices)
    other = settings.for_another
    assert (other.time_limit, other.seed, other.stop) == (7.0, 3, settings.stop)
    names = [set(part.__dataclass_fields__) for part in (Wishes, Data, Runtime)]
    assert set().union(*names) == set(Settings.__dataclass_fields__)
    assert all(getattr(other, name) is None for name in names[1])


def test_an_outcome_tells_the_seconds_that_compiling_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a first plan would be worse than later ones without a word."""
    asked = Settings(time_limit=10, workers=1, polish=False)
    assert "compiling" not in solve(tight(), "auto", asked).note
    before = iter([0.0])
    watch = type("Watch", (), {"seconds": property(lambda _: next(before, 12.4))})()
    monkeypatch.setattr("formulations.runtime.timing.COMPILING", watch)
    outcome = solve(tight(), "auto", asked)
    assert outcome.detail["compiling"] == 12.4
    assert "12 s went into compiling the search, which is kept for later solves" in outcome.note


def test_an_outcome_tells_the_seconds_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of a second that takes five says where the others went."""
    assert "beyond" not in solve(tight(), "greedy", Settings(time_limit=10)).note
    monkeypatch.setattr("formulations.clock.Clock.late", lambda _: 3.8)
    told = solve(tight(), "greedy", Settings(time_limit=1)).note
    assert "4 s beyond the time limit went into steps under way" in told


@pytest.mark.parametrize("formulation", ["auto", "cpsat"])
def test_a_malformed_certificate_loses_no_plan(
    monkeypatch: pytest.MonkeyPatch, formulation: str
) -> None:
    """What the checker cannot read is left out; the note calls it a bug and says what to send."""

    def malformed(instance: Instance, upper: int | None, *limits: float | None) -> Certificate:
        rows = [{"row": "cost", "times": -1}]
        return Certificate("bound", upper, (rows,), ({"use": [0]},))

    monkeypatch.setattr("formulations.search.prover.prove", malformed)
    monkeypatch.setattr("formulations.evidence.certify.prove", malformed)
    monkeypatch.setattr("formulations.evidence.certify.symmetric_lp", lambda *a, **b: None)
    monkeypatch.setattr("formulations.search.conductor.symmetric_lp", lambda *a, **b: None)
    outcome = solve(tight(), formulation, Settings(time_limit=10, workers=1))
    assert outcome.status == Status.OPTIMAL and outcome.placement is not None
    assert outcome.certificate is None
    assert outcome.note.count("a certificate was malformed and is left out") == 1
    assert "This is a bug in milp-planner: please report it with" in outcome.note


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
    """The solve stops long before its limit, with an accepted certificate within the gap, which
    ``verify`` refutes if settings or certificate do not support it; on the way the caller hears of
    the certified bound and of plans that pass the check."""
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
    asked: list[object] = [1e-9, None, True, float("nan")]
    for gap in asked:
        claims = verify(instance, outcome.with_(settings={**outcome.settings, "gap": gap})).claims
        assert "stopped by" in [c.name for c in claims if c.ok is False]
    nothing = replace(outcome, certificate=None, certified_bound=None)
    assert not verify(instance, nothing).ok


def test_what_was_given_up_for_goals_does_not_count() -> None:
    """The gap counts from the best plan before the goals: by hand, 100 over 96, not 110."""
    outcome = nothing("x", StoppedBy.GAP, objective=110, certified_bound=96)
    assert not near_enough(outcome, 0.05) and near_enough(outcome.with_(before_goals=100), 0.05)


def test_no_gap_is_none() -> None:
    """A gap of 0 stops nothing, even where plan and bound meet; a gap needs certificates."""
    assert not within_gap(10, 10, 0.0) and within_gap(10, 9, 0.1) and not within_gap(10, 8, 0.1)
    assert not within_gap(None, 8, 0.1) and not within_gap(8, None, 0.1)
    bare = Settings(gap=0.1, certificate=False)
    assert bare.gap_asked == 0.0 and "gap" not in bare.describe()
    assert Settings(gap=0.1).describe()["gap"] == 0.1
