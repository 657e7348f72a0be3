"""Certificates found at some capacities, used at all points of a curve."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import replace

from formulations import reduce
from formulations.capacity.curve import Answer, Known
from formulations.evidence.certify import with_certificate
from formulations.evidence.verify import accepted
from formulations.instance import Instance
from formulations.proof.carry import carried
from formulations.result.certificate import Certificate
from formulations.result.outcome import Outcome, Status, StoppedBy, found, nothing
from formulations.result.placement import Placement


class Proofs:
    """Certificates found at some capacities, used at all points of a curve: bounds in ``known``.

    Parameters
    ----------
    make : callable
        The Instance at a point.
    points : iterable of int
        The points known from the start.
    """

    def __init__(self, make: Callable[[int], Instance], points: Iterable[int]) -> None:
        self._make, self._certificates = make, list[tuple[int, Certificate]]()
        self._points = set(points)
        self.known: Known[int, Placement] = Known(operator.ge)
        self._impossible: list[tuple[int, Outcome]] = []

    def learn(self, at: int, outcome: Outcome) -> None:
        """Take in an outcome's proof and what it proves at each capacity.

        Every row's limit grows with the capacity, so a certificate also holds with less memory.
        With more, the bound is what the multipliers of its root prove there.
        """
        if outcome.status == Status.INFEASIBLE:
            self._impossible.append((at, outcome))
        certificate = usable_certificate(outcome.certificate)
        if certificate is None or certificate.target is None:
            return
        self.known.take_bound(at, certificate.target, certificate)
        self._certificates.append((at, certificate))
        for other in self._points:
            self._prove(at, certificate, other)

    def add(self, point: int) -> None:
        """Take in a point, and what is proved there by the certificates so far."""
        if point not in self._points:
            self._points.add(point)
            for at, certificate in self._certificates:
                self._prove(at, certificate, point)

    def _prove(self, at: int, certificate: Certificate, other: int) -> None:
        root, target = relaxed(self._make(other), certificate), certificate.target
        if root is None or root.target is None or target is None:
            return
        if other > at or root.target > target:
            self.known.take_bound(other, root.target, root)

    def prices(self, at: int) -> Certificate | None:
        """The multipliers with the best bound at a capacity so far."""
        known, there = self.known.certificates(at), self._make(at)
        return carried(known[0][1], there, there) if known else None

    def outcome(self, at: int, answer: Answer) -> Outcome:
        """An answer as an Outcome, with the best certificate that holds at its capacity."""
        if answer.infeasible:
            able = [outcome for other, outcome in self._impossible if other >= at]
            return min(able, key=lambda each: each.certificate is None)
        if answer.placement is None:
            return nothing("", StoppedBy.TIME_LIMIT, "no plan was found in time")
        there = self._make(at)
        plan = found(there, "", answer.placement, StoppedBy.TIME_LIMIT)
        assert plan.objective is not None
        for bound, certificate in self.known.certificates(at):
            least = replace(certificate, target=min(bound, plan.objective))
            certified = with_certificate(there, plan, least, accepted)
            if certified.certified_bound is not None:
                return certified
        return plan


def usable_certificate(certificate: Certificate | None) -> Certificate | None:
    """The certificate if it proves a bound with multipliers; else None."""
    usable = certificate is not None and certificate.kind == "bound" and certificate.vectors
    return certificate if usable else None


def relaxed_bound(instance: Instance, certificate: Certificate | None) -> int | None:
    """The bound that given multipliers prove; None where some table has no option left."""
    return None if certificate is None else reduce.relaxed_bound(instance, certificate)


def relaxed(instance: Instance, certificate: Certificate) -> Certificate | None:
    """The multipliers at a certificate's root alone, with the bound that they prove for an
    instance; None if they prove nothing."""
    bound = relaxed_bound(instance, certificate)
    if bound is None:
        return None
    use = [*dict.fromkeys([0, *certificate.nodes[0].get("use", [])])]
    return replace(certificate, target=bound, nodes=({"use": use},))
