"""A false claim of a formulation is not believed if known facts contradict it."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from formulations import Instance, Settings, Status, registry, solve
from formulations.clock import Clock
from formulations.result.outcome import BoundSource, Outcome, StoppedBy, found, infeasible
from formulations.result.placement import Placement
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.formulations.fuzz.judge import wrongs

CPSAT = BoundSource("cpsat", exact=True)
Answer = Callable[[Instance, Settings, Clock], Outcome]


def best_of(instance: Instance) -> Placement:
    """An optimal plan: 12 on the two modes."""
    plan = brute_force(instance).placement
    assert plan is not None
    return plan


def bound_above(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """A bound one above its own plan."""
    return found(instance, "x", best_of(instance), StoppedBy.PROOF, 13, CPSAT)


def no_plan(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """A false proof that there is no plan."""
    return infeasible("x", CPSAT)


def reported_better(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """A bound above a plan reported on the way, and a false bound on the way as well."""
    clock.record(12, None, "x")
    clock.record(None, 14, "x")
    return found(instance, "x", best_of(instance), StoppedBy.TIME_LIMIT, 11, CPSAT)


def honest(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """The optimum, proved."""
    return found(instance, "x", best_of(instance), StoppedBy.PROOF, 12, CPSAT)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """What the formulation says when it is asked, in turn."""
    given: list[Answer] = []

    def one(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
        return given.pop(0)(instance, settings, clock)

    fake = SimpleNamespace(proves="optimum", check=lambda options: None, load=lambda: one)
    monkeypatch.setattr(registry, "get", lambda name: fake)
    return given


@pytest.mark.parametrize("lie", [bound_above, no_plan, reported_better])
def test_a_lie_is_solved_again(answers: list[Answer], lie: Answer) -> None:
    """After a false answer the formulation is asked again; its honest second answer counts."""
    answers += [lie, honest]
    outcome = solve(two_modes(), "x", Settings(time_limit=20, workers=2))
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.OPTIMAL, 12, 12)
    assert wrongs(two_modes(), 12, outcome) == []


@pytest.mark.parametrize("lie", [bound_above, no_plan, reported_better])
def test_a_liar_s_claims_are_dropped(answers: list[Answer], lie: Answer) -> None:
    """After two false answers the known plan stands, with no bound but a certificate's."""
    answers += [lie, lie, lie, lie]
    settings = Settings(time_limit=20, workers=1, hint=best_of(two_modes()))
    outcome = solve(two_modes(), "x", replace(settings, certificate=False))
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.FEASIBLE, 12, None)
    outcome = solve(two_modes(), "x", settings)
    assert outcome.objective == 12 and outcome.bound == outcome.certified_bound
    assert "a solver's proof was dropped" in outcome.note
    assert wrongs(two_modes(), 12, outcome) == []


def test_no_plan_beside_greedy_s(answers: list[Answer]) -> None:
    """A claim that there is no plan is dropped if greedy finds one, even if the caller has none."""
    answers += [no_plan, no_plan]
    outcome = solve(two_modes(12, 20), "x", Settings(time_limit=20, workers=1))
    assert outcome.status in (Status.UNKNOWN, Status.FEASIBLE)
    assert "the claim was that no plan exists" in outcome.note


def test_what_a_certificate_proves_is_believed(answers: list[Answer]) -> None:
    """A claim that there is no plan is believed at once if a certificate proves it."""
    answers += [no_plan]
    outcome = solve(two_modes(3, 3), "x", Settings(time_limit=20, workers=1))
    assert outcome.status == Status.INFEASIBLE and outcome.certificate is not None
