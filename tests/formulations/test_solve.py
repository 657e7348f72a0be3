"""The entry point: what is known of one instance never reaches another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from formulations import InstanceError, Objective, Placement, Settings, Status, solve
from formulations.capacity.budget import Budget
from formulations.instance import Instance
from formulations.result.certificate import Certificate
from formulations.settings import Data, Runtime, Wishes
from tests.formulations.examples import two_modes
from tests.formulations.search.test_plans import eight_equal, tight


def solved(instance: Instance) -> tuple[Placement, Certificate]:
    """A plan and a certificate."""
    outcome = solve(instance, "auto", Settings(time_limit=10, workers=1))
    assert outcome.placement is not None and outcome.certificate is not None
    return outcome.placement, outcome.certificate


@pytest.mark.parametrize("objective", [Objective.TOTAL, Objective.STEP_TIME])
def test_multipliers_of_another_objective_are_not_used(objective: Objective) -> None:
    """They name rows of costs that the other objective does not have; solving goes on without, to
    the same optimum as without them."""
    plan, prices = solved(tight())
    other, asked = replace(tight(), objective=objective), Settings(time_limit=10, workers=1)
    outcome = solve(other, "auto", replace(asked, hint=plan, prices=prices))
    assert outcome.status == Status.OPTIMAL
    assert outcome.objective == solve(other, "auto", asked).objective


def test_multipliers_of_other_resources_are_not_used() -> None:
    """This instance has no memory at all."""
    _, prices = solved(tight())
    outcome = solve(eight_equal(), "auto", Settings(time_limit=10, workers=1, prices=prices))
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, 2000)


def test_a_question_about_another_instance_gets_no_data() -> None:
    """A diagnosis has costs of its own, where neither plan nor multipliers mean anything."""
    plan, prices = solved(tight())
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


def test_settings_for_another_instance_keep_wishes_and_runtime() -> None:
    """Only data goes."""
    plan, prices = solved(two_modes(16, 16))
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

    def malformed(instance: Instance, upper: int | None, seconds: float | None) -> Certificate:
        rows = [{"row": "cost", "times": -1}]
        return Certificate("bound", upper, (rows,), ({"use": [0]},))

    monkeypatch.setattr("formulations.search.prover.prove", malformed)
    monkeypatch.setattr("formulations.evidence.certify.prove", malformed)
    monkeypatch.setattr("formulations.search.conductor.symmetric_lp", lambda *a, **b: None)
    outcome = solve(tight(), formulation, Settings(time_limit=10, workers=1))
    assert outcome.status == Status.OPTIMAL and outcome.placement is not None
    assert outcome.certificate is None
    assert outcome.note.count("a certificate was malformed and is left out") == 1
    assert "This is a bug in milp-planner: please report it with" in outcome.note
