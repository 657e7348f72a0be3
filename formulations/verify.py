"""Re-derive what an Outcome claims, with no solver: feasibility, objective, certified bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from formulations.certificate import Certificate, bound_of, proves_infeasible
from formulations.check import check
from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.outcome import Outcome, Status


@dataclass(frozen=True)
class Claim:
    """One claim of an Outcome and whether it was re-derived.

    Attributes
    ----------
    name : str
        ``placement``, ``objective``, ``certified bound``, ``bound``, ``gap``, ``status``, …
    ok : bool or None
        None: consistent, but only the solver's word stands behind it.
    text : str
        One sentence for people.
    """

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class Verification:
    """All claims of one Outcome; ``ok`` when none failed."""

    claims: tuple[Claim, ...]

    @property
    def ok(self) -> bool:
        """Whether no claim was refuted."""
        return all(claim.ok is not False for claim in self.claims)


def verify(instance: Instance, outcome: Outcome) -> Verification:
    """Judge an Outcome from the Instance alone.

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
        Usually read from a file: nothing in it is trusted.

    Returns
    -------
    Verification
        Refuted claims have ``ok=False``; a bound that no certificate backs is ``ok=None``.
    """
    claims = [
        *_placement(instance, outcome),
        *_certificate(instance, outcome),
        *_bound(outcome),
        _status(instance, outcome),
    ]
    return Verification(tuple(claims))


def _placement(instance: Instance, outcome: Outcome) -> Iterator[Claim]:
    if outcome.placement is None:
        if outcome.objective is not None or outcome.objectives:
            yield Claim("objective", False, "an objective is claimed without a placement")
        return
    verdict = check(instance, outcome.placement)
    first = verdict.violations[0] if verdict.violations else "every constraint holds"
    yield Claim("placement", verdict.feasible, first)
    if not verdict.objectives:
        return
    actual = verdict.objectives[instance.objective.value]
    yield _equal("objective", outcome.objective, actual)
    for name, value in outcome.objectives.items():
        if verdict.objectives.get(name) != value:
            yield _equal(f"objectives.{name}", value, verdict.objectives.get(name))


def _equal(name: str, claimed: int | None, actual: int | None) -> Claim:
    if claimed == actual:
        return Claim(name, True, f"{actual}, recomputed")
    return Claim(name, False, f"{claimed} claimed, {actual} recomputed from the instance")


def _certificate(instance: Instance, outcome: Outcome) -> Iterator[Claim]:
    certificate = outcome.certificate
    if certificate is None:
        if outcome.certified_bound is not None:
            yield Claim("certified bound", False, "claimed without a certificate")
        return
    try:
        yield _derived(instance, outcome, certificate)
    except InstanceError as error:
        yield Claim("certificate", False, str(error))


def _derived(instance: Instance, outcome: Outcome, certificate: Certificate) -> Claim:
    if certificate.kind == "infeasible":
        proved = proves_infeasible(instance, certificate)
        text = "the certificate's prices rule every plan out" if proved else "it proves nothing"
        return Claim("infeasibility certificate", proved, text)
    return _equal("certified bound", outcome.certified_bound, bound_of(instance, certificate))


def _bound(outcome: Outcome) -> Iterator[Claim]:
    bound, objective = outcome.bound, outcome.objective
    if bound is None:
        return
    if objective is not None and bound > objective:
        yield Claim("bound", False, f"{bound} lies above the plan's own objective {objective}")
        return
    certified = outcome.certified_bound
    if certified is not None and bound < certified:
        yield Claim("bound", False, f"{bound} lies below the certified bound {certified}")
        return
    if outcome.bound_source is None:
        yield Claim("bound", False, f"{bound} is claimed without a source")
        return
    if bound == certified:
        yield Claim("bound", True, f"{bound}, certified")
        return
    kind = "in integers" if outcome.bound_source.exact else "in floating point"
    backed = "nothing" if certified is None else str(certified)
    yield Claim(
        "bound",
        None,
        f"{bound} is the word of {outcome.bound_source.method} ({kind}); certified here: {backed}",
    )


def _status(instance: Instance, outcome: Outcome) -> Claim:
    proved = outcome.bound is not None and outcome.bound == outcome.objective
    if outcome.placement is not None:
        expected = Status.OPTIMAL if proved else Status.FEASIBLE
        return Claim(
            "status", outcome.status == expected, f"{outcome.status.value}, by its own figures "
            f"{expected.value}",
        )  # fmt: skip
    if outcome.status == Status.INFEASIBLE:
        backed = outcome.certificate is not None and outcome.certificate.kind == "infeasible"
        word = outcome.bound_source.method if outcome.bound_source else "nobody"
        text = "certified" if backed else f"the word of {word}"
        return Claim("status", True if backed else None, f"infeasible: {text}")
    return Claim(
        "status", outcome.status == Status.UNKNOWN, f"{outcome.status.value}, no placement"
    )
