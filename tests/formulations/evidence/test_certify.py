"""Certificates on outcomes: which claims they raise, and which they leave alone."""

from __future__ import annotations

from dataclasses import replace

from formulations.evidence.certify import CERTIFICATE, certify, raised, with_certificate
from formulations.evidence.verify import verify
from formulations.proof.prove import symmetric_lp
from formulations.result.outcome import BoundSource, Status, StoppedBy, found, infeasible
from tests.formulations.brute_force import brute_force
from tests.formulations.proof.test_prove import four_tables


def test_a_bound_that_meets_the_plan_is_optimal() -> None:
    """An outcome without a bound gets the certified one, and with it its status."""
    instance = four_tables()
    truth = brute_force(instance)
    assert truth.placement is not None
    outcome = certify(instance, found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT))
    assert outcome.certificate is not None
    assert outcome.certified_bound == outcome.bound == 22
    assert outcome.bound_source == CERTIFICATE
    assert (outcome.status, outcome.stopped_by) == (Status.OPTIMAL, StoppedBy.PROOF)


def test_a_certificate_replaces_a_floating_point_word_for_the_same_bound() -> None:
    """A certificate replaces the equal bound of a source that could not prove the optimum."""
    instance = four_tables()
    truth = brute_force(instance)
    assert truth.placement is not None
    highs = BoundSource("highs", exact=False)
    outcome = found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT, 22, highs)
    outcome = certify(instance, outcome)
    assert (outcome.status, outcome.bound_source) == (Status.OPTIMAL, CERTIFICATE)
    assert verify(instance, outcome).ok


def test_the_better_certificate_stays() -> None:
    """A weaker certificate replaces neither a better one nor a solver's higher bound."""
    instance = four_tables()
    truth = brute_force(instance)
    assert truth.placement is not None
    solver = BoundSource("cpsat", exact=True)
    outcome = found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT, 21, solver)
    weak = symmetric_lp(instance, targets=False)
    assert weak is not None
    outcome = with_certificate(instance, outcome, weak.certificate)
    assert (outcome.bound, outcome.certified_bound, outcome.bound_source) == (21, 20, solver)
    certified = certify(instance, outcome)
    assert certified.certified_bound == 22
    assert with_certificate(instance, certified, weak.certificate) is certified


def test_what_is_feasible_stays_a_solvers_word() -> None:
    """A wrong claim that there is no plan gets no certificate."""
    outcome = infeasible("test", BoundSource("cpsat", exact=True))
    assert certify(four_tables(), outcome) is outcome


def test_a_certificate_is_raised_to_the_plans_cost() -> None:
    """A certificate whose nodes prove more than its target is raised to the plan's cost, once."""
    instance = four_tables()
    truth = brute_force(instance)
    assert truth.placement is not None
    proved = certify(instance, found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT))
    assert proved.certificate is not None
    lower = replace(proved.certificate, target=21)
    outcome = found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT)
    outcome = with_certificate(instance, outcome, lower)
    assert (outcome.status, outcome.certified_bound) == (Status.FEASIBLE, 21)
    outcome = raised(instance, outcome, 1.0)
    assert (outcome.status, outcome.certified_bound) == (Status.OPTIMAL, 22)
    assert raised(instance, outcome, 1.0) is outcome
