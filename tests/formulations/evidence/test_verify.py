"""Verification re-derives every claim and refuses the ones that do not follow.

Certificates on outcomes: which claims they raise, and which they leave alone.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from formulations import (
    BoundSource,
    Instance,
    Placement,
    Settings,
    Status,
    StoppedBy,
    checker,
    solve,
)
from formulations.evidence.certify import CERTIFICATE, certify, raised, with_certificate
from formulations.evidence.verify import Verification, certifies, holds, verify
from formulations.proof.prove import symmetric_lp
from formulations.result.outcome import Outcome, found, infeasible, nothing
from formulations.settings import TracePoint
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built, every_kind, four_tables, two_modes


@pytest.fixture(scope="module")
def proved() -> Outcome:
    """The optimum of the headline case, with its certificate."""
    return solve(two_modes(), "cpsat", Settings(time_limit=20, workers=1))


def failed(verification: Verification) -> list[str]:
    """Names of the refuted claims."""
    return [c.name for c in verification.claims if c.ok is False]


def test_a_true_outcome_passes(proved: Outcome) -> None:
    """The headline optimum verifies, certified bound included."""
    verification = verify(two_modes(), proved)
    assert verification.ok
    names = {c.name for c in verification.claims}
    assert {"placement", "objective", "bound", "status", "certified bound"} <= names


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({"objective": 11}, "objective"),
        ({"objectives": {"total": 1}}, "objectives.total"),
        ({"bound": 13}, "bound"),
        ({"bound": 1}, "bound"),
        ({"certified_bound": 13}, "certified bound"),
        ({"certificate": None}, "certified bound"),
        ({"bound_source": None, "certified_bound": None, "certificate": None}, "bound"),
        ({"status": Status.FEASIBLE}, "status"),
        ({"stopped_by": StoppedBy.TIME_LIMIT}, "stopped by"),
        ({"trace": (TracePoint(0.0, 11, None, "x"), TracePoint(0.0, 12, None, "x"))}, "trace"),
        ({"trace": (TracePoint(0.0, 13, None, "x"),)}, "trace"),
        ({"trace": (TracePoint(0.0, 12, 13, "x"),)}, "trace"),
        ({"trace": (TracePoint(0.2, 12, 9, "x"), TracePoint(0.1, 12, 12, "x"))}, "trace"),
        ({"trace": (TracePoint(1e6, 12, 12, "x"),)}, "trace"),
        ({"placement": None}, "objective"),
        ({"placement": Placement(np.asarray([0, 2]), [[np.zeros(1, int)]] * 2)}, "placement"),
        ({"placement": Placement(np.asarray([3, 0]), [[np.zeros(1, int)]] * 2)}, "placement"),
    ],
)
def test_false_claims_are_refuted(proved: Outcome, changes: dict[str, Any], refuted: str) -> None:
    """Each false claim is refuted under its own name, and does not hold by arrays either."""
    false = proved.with_(**changes)
    assert refuted in failed(verify(two_modes(), false))
    assert not holds(two_modes(), false)


def test_arrays_do_without_the_checker(proved: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """``holds`` accepts a true outcome by arrays, and asks the checker where they cannot tell."""
    asked = list[Outcome]()

    def noted(_instance: Instance, outcome: Outcome) -> Verification:
        asked.append(outcome)
        return Verification(())

    monkeypatch.setattr("formulations.evidence.verify.verify", noted)
    assert holds(two_modes(), proved) and not asked
    assert proved.certificate is not None
    packed = replace(proved.certificate, nodes=({"use": [0], "pack": "hbm"},))
    assert holds(two_modes(), proved.with_(certificate=packed)) and len(asked) == 1


def test_a_moved_shard_is_refuted() -> None:
    """An outcome with a shard moved to a rank it may not take is refuted."""
    instance = every_kind()
    outcome = solve(instance, "cpsat", Settings(time_limit=20, workers=1))
    assert verify(instance, outcome).ok and outcome.placement is not None
    ranks = [list(blocks) for blocks in outcome.placement.ranks]
    ranks[2] = [np.asarray([1, 2])]
    moved = outcome.with_(placement=replace(outcome.placement, ranks=ranks))
    assert "placement" in failed(verify(instance, moved)) and not holds(instance, moved)


def test_a_certificate_with_an_open_case(proved: Outcome) -> None:
    """A tree cut off at its root, or a target one higher, proves nothing."""
    assert proved.certificate is not None
    target = (proved.certificate.target or 0) + 1
    for forged in (
        replace(proved.certificate, nodes=({},)),
        replace(proved.certificate, target=target),
    ):
        claims = failed(verify(two_modes(), proved.with_(certificate=forged)))
        assert claims == ["certified bound"]


def test_a_solvers_word_is_called_that(proved: Outcome) -> None:
    """A bound without a certificate is neither proved nor refuted: it is the solver's word."""
    alone = proved.with_(certificate=None, certified_bound=None)
    exact, rough = BoundSource("cpsat", exact=True), BoundSource("highs", exact=False)
    for source, status, why, words in (
        (exact, Status.OPTIMAL, StoppedBy.PROOF, "cpsat (in integers)"),
        (rough, Status.FEASIBLE, StoppedBy.EXHAUSTED, "highs (in floating point)"),
    ):
        claimed = alone.with_(bound_source=source, status=status, stopped_by=why)
        verification = verify(two_modes(), claimed)
        claim = next(c for c in verification.claims if c.name == "bound")
        assert verification.ok and claim.ok is None
        assert words in claim.text


def test_floating_point_proves_no_optimum(proved: Outcome) -> None:
    """A plan whose bound meets it in floating point is feasible; called optimal, it is refuted."""
    floating = BoundSource("highs", exact=False)
    alone = proved.with_(certificate=None, certified_bound=None, bound_source=floating)
    assert alone.status == Status.OPTIMAL and "status" in failed(verify(two_modes(), alone))


def test_no_plan() -> None:
    """Unknown passes, infeasible needs a certificate or a solver's word, feasible is refuted."""
    instance = two_modes(3, 3)
    assert verify(instance, nothing("dp", StoppedBy.EXHAUSTED)).ok
    word = verify(instance, infeasible("cpsat", BoundSource("cpsat", exact=True)))
    assert word.ok and word.claims[-1].ok is None
    certified = solve(instance, "cpsat", Settings(time_limit=20, workers=1))
    assert certified.status == Status.INFEASIBLE and certified.certificate is not None
    assert [c.ok for c in verify(instance, certified).claims] == [True, True]
    assert failed(verify(two_modes(), certified)) == ["infeasibility certificate"]
    seen = certified.with_(trace=(TracePoint(0.0, 12, None, "x"),))
    assert failed(verify(instance, seen)) == ["trace"]
    lied = nothing("dp", StoppedBy.EXHAUSTED).with_(status=Status.FEASIBLE)
    assert failed(verify(instance, lied)) == ["status"]


def test_a_certificate_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, proved: Outcome
) -> None:
    """Such a certificate stays unchecked; only another false claim refutes the outcome."""
    monkeypatch.setattr(checker, "MOST_STEPS", 0)
    monkeypatch.setattr(checker, "STEPS_PER_OPTION", 0)
    verification = verify(two_modes(), proved)
    assert not verification.ok and not verification.refuted and verification.unchecked
    assert verify(two_modes(), proved.with_(objective=11)).refuted
    assert proved.certificate is not None and not certifies(two_modes(), proved.certificate)


FOUR = four_tables()


def best(bound: int | None = None, source: BoundSource | None = None) -> Outcome:
    """The best plan of four tables, which costs 22, with a bound."""
    plan = brute_force(FOUR).placement
    assert plan is not None
    return found(FOUR, "test", plan, StoppedBy.TIME_LIMIT, bound, source)


@pytest.mark.parametrize(
    ("bound", "source"), [(None, None), (22, BoundSource("highs", exact=False))]
)
def test_a_bound_that_meets_the_plan_is_optimal(
    bound: int | None, source: BoundSource | None
) -> None:
    """An outcome gets the certified bound, and with it its status, where it has none, or the same
    from a source that could not prove the optimum."""
    outcome = certify(FOUR, best(bound, source))
    assert outcome.certificate is not None and verify(FOUR, outcome).ok
    assert outcome.certified_bound == outcome.bound == 22
    assert outcome.bound_source == CERTIFICATE
    assert (outcome.status, outcome.stopped_by) == (Status.OPTIMAL, StoppedBy.PROOF)


def test_what_a_solver_proved_is_certified_by_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three shards of two units on two ranks: sums of rows prove 3, a row of functions the optimum,
    4, also where the prover finds nothing."""
    monkeypatch.setattr("formulations.evidence.certify.prove", lambda *_: None)
    instance = built({name: {"whole": at(ANY, 2)} for name in "abc"}, "step_time")
    truth = brute_force(instance)
    assert truth.placement is not None and truth.objective == 4
    first = symmetric_lp(instance, targets=False)
    assert first is not None and first.bound == 3
    outcome = certify(instance, found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT))
    assert outcome.certified_bound == 4 and outcome.status == Status.OPTIMAL
    assert verify(instance, outcome).ok


def test_the_better_certificate_stays() -> None:
    """A weaker certificate replaces neither a better one nor a solver's higher bound."""
    solver = BoundSource("cpsat", exact=True)
    weak = symmetric_lp(FOUR, targets=False)
    assert weak is not None
    outcome = with_certificate(FOUR, best(21, solver), weak.certificate)
    assert (outcome.bound, outcome.certified_bound, outcome.bound_source) == (21, 20, solver)
    certified = certify(FOUR, outcome)
    assert certified.certified_bound == 22
    assert with_certificate(FOUR, certified, weak.certificate) is certified


def test_what_is_feasible_stays_a_solvers_word() -> None:
    """A wrong claim that there is no plan gets no certificate."""
    outcome = infeasible("test", BoundSource("cpsat", exact=True))
    assert certify(FOUR, outcome) is outcome


def test_a_certificate_is_raised_to_the_plans_cost() -> None:
    """A certificate whose nodes prove more than its target is raised to the plan's cost, once."""
    proved = certify(FOUR, best())
    assert proved.certificate is not None
    outcome = with_certificate(FOUR, best(), replace(proved.certificate, target=21))
    assert (outcome.status, outcome.certified_bound) == (Status.FEASIBLE, 21)
    outcome = raised(FOUR, outcome, 1.0)
    assert (outcome.status, outcome.certified_bound) == (Status.OPTIMAL, 22)
    assert raised(FOUR, outcome, 1.0) is outcome
