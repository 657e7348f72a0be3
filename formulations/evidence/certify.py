"""Attach certificates to Outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic

from formulations.evidence.verify import accepted, seconds_to_check
from formulations.instance import Instance
from formulations.patterns.boxes import FUNCTIONS, Boxes, left_by, limited
from formulations.proof.build import build_rows
from formulations.proof.prove import prove, prove_infeasible, symmetric_lp
from formulations.proof.tree import empty_table
from formulations.result.certificate import Certificate
from formulations.result.outcome import BoundSource, Outcome, Status, StoppedBy
from formulations.settings import Settings

#: Source of a bound that a certificate proves.
CERTIFICATE = BoundSource("certificate", exact=True)
#: Seconds that a proof gets even if less time is left.
LEAST_SECONDS = 0.5
#: Share of the time limit reserved for a proof, and the most seconds: on one machine, where trees
#: are small, and on several.
KEEP, MOST_SECONDS = (0.05, 0.15), (5.0, 30.0)
#: Share of a proof's time that finding it may take; checking its cases takes up to the rest.
FINDING = 0.7
#: Share of that for boxes; units of work where there is no time limit; the first turn, and the
#: share of the gap that a turn must close for another.
BOXES, MOST_WORK, FIRST_TURN, WORTH = 0.6, 2.0, 0.25, 0.05


def kept_to_prove(instance: Instance, settings: Settings) -> float:
    """Seconds to reserve for :func:`certify` in a solve that proves nothing on the way, including
    the checker's time where that is short."""
    if not settings.certificate or settings.work_limit is not None:
        return 0.0
    several = len(instance.machines) > 1
    kept = min(MOST_SECONDS[several], KEEP[several] * (settings.time_limit or 0.0))
    check = seconds_to_check(instance)
    return kept + (check if check <= kept else 0.0)


Tell = Callable[[str], None]


def certify(
    instance: Instance, outcome: Outcome, seconds: float | None = None, tell: Tell | None = None
) -> Outcome:
    """Attach the best certificate found in time.

    A feasible outcome gets a bound, which also becomes ``bound`` if that is missing or lower; an
    infeasible outcome gets a proof that there is no plan.

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
    seconds : float, optional
        For finding and checking the certificate.
    tell : callable, optional
        As in :func:`formulations.evidence.verify.accepted`.

    Returns
    -------
    Outcome
        With ``certificate`` and ``certified_bound``; unchanged if none was found.
    """
    left, finding = inf, None
    if seconds is not None:
        left, check = max(2 * LEAST_SECONDS, seconds), seconds_to_check(instance)
        # if the checker would take longer than that, only the judge can accept a certificate
        finding = max(LEAST_SECONDS, FINDING * (seconds - (check if check < seconds else 0.0)))
    accepts = partial(accepted, seconds=left, tell=tell)
    if outcome.status == Status.INFEASIBLE:
        proof = prove_infeasible(instance, finding)
        if proof is None or not accepts(instance, proof):
            return outcome
        return outcome.with_(certificate=proof)
    for proof in _proofs(instance, outcome.objective, finding):
        outcome = with_certificate(instance, outcome, proof, accepts)
    return outcome


def _proofs(instance: Instance, upper: int | None, seconds: float | None) -> Iterator[Certificate]:
    """A certificate of boxes where the linear program is not enough, and one of the prover where
    these are not."""
    start, boxed = monotonic(), None
    if upper is not None:
        boxed = _boxed(instance, upper, inf if seconds is None else BOXES * seconds)
    if boxed is not None:
        yield boxed
        if boxed.target == upper:
            return
    left = None if seconds is None else seconds - (monotonic() - start)
    found = prove(instance, upper, left, None if boxed is None else boxed.target)
    if found is not None:
        yield found


def _boxed(instance: Instance, upper: int, seconds: float) -> Certificate | None:
    """A certificate of boxes of functions, which are split while each turn, as long as all before
    it, closes a share of the gap; None where the linear program is enough, or boxes do not suit."""
    start, end, before = monotonic(), FIRST_TURN, -1
    lp = symmetric_lp(instance, upper, None if seconds == inf else seconds)
    if lp is None or lp.bound >= upper:
        return None
    keep = left_by(instance, lp.certificate, upper)
    empty = empty_table(build_rows(instance), keep)
    peaks = None if empty else limited(instance, keep, upper, FUNCTIONS)
    if peaks is None:
        return None
    boxes = Boxes(peaks, keep, upper, FUNCTIONS)

    def late() -> bool:
        return boxes.work >= MOST_WORK if seconds == inf else monotonic() - start >= seconds

    def over() -> bool:
        return late() or boxes.work >= end

    while boxes.run(over) and not late() and boxes.bound - before > WORTH * (upper - before):
        before, end = boxes.bound, 2 * end
    return boxes.certificate(lp.certificate.vectors[0])


def raised(
    instance: Instance, outcome: Outcome, seconds: float, tell: Tell | None = None
) -> Outcome:
    """The outcome's own certificate with the plan's cost as its target, if it closes for that too.

    A certificate is made for the best plan at that time. The same multipliers may also prove that a
    plan found later is optimal.
    """
    certificate, objective = outcome.certificate, outcome.objective
    if certificate is None or objective is None or certificate.target in (None, objective):
        return outcome
    higher = replace(certificate, target=objective)
    accepts = partial(accepted, seconds=seconds, tell=tell)
    return with_certificate(instance, outcome, higher, accepts)


def with_certificate(
    instance: Instance,
    outcome: Outcome,
    certificate: Certificate,
    accepts: Callable[[Instance, Certificate], bool] = accepted,
) -> Outcome:
    """Attach a bound certificate if it is accepted and beats the outcome's own."""
    known, bound = outcome.certified_bound, certificate.target
    if bound is None or (known is not None and known >= bound):
        return outcome
    if not accepts(instance, certificate):
        return outcome
    outcome = outcome.with_(certificate=certificate, certified_bound=bound)
    exact = outcome.bound_source is not None and outcome.bound_source.exact
    if outcome.bound is None or bound > outcome.bound or (bound == outcome.bound and not exact):
        outcome = outcome.with_(bound=bound, bound_source=CERTIFICATE)
    if outcome.objective is not None and outcome.objective == bound:
        outcome = outcome.with_(status=Status.OPTIMAL, stopped_by=StoppedBy.PROOF)
    return outcome
