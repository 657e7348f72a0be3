"""Re-derive the claims of an Outcome without a solver: feasibility, objective, certified bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from formulations import checker
from formulations.errors import InstanceError, our_bug
from formulations.instance import Instance
from formulations.instance.file import instance_to_dict
from formulations.instance.restrictions import restrictions
from formulations.proof import judge
from formulations.result.certificate import Certificate, certificate_to_dict
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status, StoppedBy, near_enough
from formulations.result.outcome_file import outcome_to_dict
from formulations.runtime.collector import uncollected

#: Tolerance in seconds: the times of trace points and of the outcome are rounded separately.
_ROUNDING = 0.01
#: Seconds per option that the checker takes to read an instance, and to check a certificate without
#: cases; measured on a slow day.
READING, CHECKING = 9e-5, 5e-5
_LONG = "the certificate takes more steps than the checker allows"


@dataclass(frozen=True)
class Claim:
    """A claim of an Outcome, and whether it was re-derived.

    Attributes
    ----------
    name : str
        ``placement``, ``objective``, ``certified bound``, ``bound``, ``gap``, ``status``, …
    ok : bool or None
        None: consistent, but it rests on the solver alone.
    text : str
        One sentence for people.
    """

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class Verification:
    """All claims of one Outcome.

    Attributes
    ----------
    claims : tuple of Claim
    unchecked : tuple of str
        Why some claims could not be judged and may be right or wrong, for example because the
        certificate needs more steps than the checker allows.
    restrictions : tuple of str
        Restrictions of the instance that its inputs do not have; the claims hold subject to them.
    """

    claims: tuple[Claim, ...]
    unchecked: tuple[str, ...] = ()
    restrictions: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether some claim is false."""
        return any(claim.ok is False for claim in self.claims)

    @property
    def ok(self) -> bool:
        """Whether everything was checked and no claim refuted."""
        return not self.unchecked and not self.refuted

    @property
    def exit_code(self) -> int:
        """1: refuted; 3: not checked; 0: all claims follow (docs/outcome.md)."""
        return 1 if self.refuted else 3 if self.unchecked else 0


def verify(instance: Instance, outcome: Outcome, case: checker.Case | None = None) -> Verification:
    """Judge an Outcome from the Instance alone.

    Parameters
    ----------
    instance : Instance
    outcome : Outcome
        Usually read from a file; nothing in it is trusted.
    case : checker.Case, optional
        The checker's own reading of that file; by default it is made from the Outcome.

    Returns
    -------
    Verification
        Refuted claims have ``ok=False``; a bound that no certificate backs is ``ok=None``.

    Raises
    ------
    InstanceError
        When the certificate is malformed, or a file could not hold the Outcome.
    """
    try:
        case = case or _case(instance, outcome)
    except checker.NotChecked as error:
        return Verification((Claim("instance", None, f"not checked: {error}"),), (str(error),))
    unchecked = tuple[str, ...]()
    try:
        certificate, forced = [*_certificate(outcome, case)], [*_must_move(case)]
    except checker.NotChecked as error:
        certificate, unchecked = [Claim("certificate", None, f"not checked: {error}")], (_LONG,)
        forced = []
    claims = [
        *_placement(instance, outcome),
        *certificate,
        *_bound(outcome),
        *_search(outcome),
        *forced,
        _status(outcome, case.too_little()),
    ]
    if all(claim.ok is not False for claim in claims):
        claims += refuted_by_the_checker(case)
    return Verification(tuple(claims), unchecked, restrictions(instance))


def holds(instance: Instance, outcome: Outcome) -> bool:
    """Whether :func:`verify` would find an outcome ok, but faster where the judge can tell.

    :func:`formulations.result.check.check` judges the placement and
    :mod:`formulations.proof.judge` the certificate; the outcome's other figures are checked as in
    :func:`verify`. Anything not confirmed this way goes to the checker, which is slower.

    Raises
    ------
    InstanceError
        As in :func:`verify`.
    """
    if outcome.placement is None or not judge.closes(instance, outcome.certificate):
        return verify(instance, outcome).ok
    assert outcome.certificate is not None
    target = outcome.certificate.target
    claims = [
        *_placement(instance, outcome),
        _equal("certified bound", outcome.certified_bound, target),
        *_bound(outcome),
        *_search(outcome),
        _status(outcome),
    ]
    document = outcome_to_dict(instance, outcome, "any: these three do not read it")
    try:
        checker.well_formed(document)
        checker.searched(document)
        checker.verdict(document, planned=True)
    except (checker.Unreadable, checker.Refuted):
        return verify(instance, outcome).ok
    good = all(claim.ok is not False for claim in claims)
    return good or verify(instance, outcome).ok


def refuted_by_the_checker(case: checker.Case, closes: bool = False) -> list[Claim]:
    """The claims that the checker refutes; with ``closes`` it also judges the certificate."""
    try:
        case.follows()
        if closes:
            case.closes()
    except checker.Refuted as error:
        return [Claim("checker", False, str(error))]
    except checker.NotChecked:
        return []
    return []


def _case(instance: Instance, outcome: Outcome) -> checker.Case:
    """The checker's reading of an Outcome that was not read from a file."""
    try:
        return checker.Case(_as_read(instance), outcome_to_dict(instance, outcome))
    except checker.Unreadable as error:
        raise InstanceError(str(error)) from error


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


def certifies(instance: Instance, certificate: Certificate) -> bool:
    """Whether the checker, which shares no code with the prover, accepts the certificate.

    False also if the certificate needs more steps than the checker allows.

    Raises
    ------
    InstanceError
        When the certificate is malformed.
    """
    with uncollected():
        try:
            proof = checker.Proof(_as_read(instance), certificate_to_dict(certificate))
            return proof.open_case() is None
        except checker.Unreadable as error:
            raise InstanceError(f"certificate: {error}") from error
        except checker.NotChecked:
            return False


def seconds_to_check(instance: Instance) -> float:
    """About how long :func:`certifies` takes; less once it has read the instance."""
    return instance.num_options * (CHECKING + READING)


def accepted(
    instance: Instance,
    certificate: Certificate,
    seconds: float = inf,
    tell: Callable[[str], None] | None = None,
) -> bool:
    """Whether a solve may claim what a certificate says: the judge
    (:mod:`formulations.proof.judge`) accepts it or, where the judge cannot read it, the checker.

    Parameters
    ----------
    instance : Instance
    certificate : Certificate
    seconds : float
        A certificate that the checker cannot check in this time is not accepted.
    tell : callable, optional
        Called with a sentence if the certificate is malformed, which is a bug of ours; it is not
        accepted then.
    """
    closed = judge.closes(instance, certificate)
    if closed is not None:
        return closed
    if seconds_to_check(instance) > seconds:
        return False
    try:
        return certifies(instance, certificate)
    except InstanceError as error:
        if tell is not None:
            tell(our_bug(f"a certificate was malformed and is left out ({error})"))
        return False


def _closes(case: checker.Case) -> bool:
    """Whether the certificate of a case closes every node."""
    with uncollected():
        try:
            case.closes()
        except checker.Refuted:
            return False
        return True


@lru_cache(maxsize=1)
def _as_read(instance: Instance) -> checker.Instance:
    """The checker's reading of an instance's file, cached for the next certificate."""
    return checker.Instance(instance_to_dict(instance))


def _certificate(outcome: Outcome, case: checker.Case) -> Iterator[Claim]:
    certificate = outcome.certificate
    if certificate is None:
        if outcome.certified_bound is not None:
            yield Claim("certified bound", False, "claimed without a certificate")
        return
    proved = _closes(case)
    if certificate.kind == "infeasible":
        if outcome.certified_bound is not None:
            yield Claim("certified bound", False, "claimed beside a proof that there is no plan")
        text = "no case of the certificate has a plan" if proved else "it proves nothing"
        yield Claim("infeasibility certificate", proved, text)
    elif proved:
        yield _equal("certified bound", outcome.certified_bound, certificate.target)
    else:
        yield Claim("certified bound", False, "some case of its certificate is left open")


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
        f"{bound} is claimed by {outcome.bound_source.method} ({kind}); certified: {backed}",
    )


def _must_move(case: checker.Case) -> Iterator[Claim]:
    """What must move at least."""
    for must, why in case.unproved():
        text = f"{must['least']} at least" if why is None else f"{must['least']}: {why}"
        yield Claim(f"{must['counted']} that must move", why is None, text)


def _status(outcome: Outcome, too_little: bool = False) -> Claim:
    """``too_little``: less may move than must."""
    if outcome.placement is not None:
        expected = Status.OPTIMAL if outcome.closed else Status.FEASIBLE
        return Claim(
            "status", outcome.status == expected, f"{outcome.status.value}; its figures give "
            f"{expected.value}",
        )  # fmt: skip
    if outcome.status == Status.INFEASIBLE:
        backed = outcome.certificate is not None and outcome.certificate.kind == "infeasible"
        backed |= too_little
        method = outcome.bound_source.method if outcome.bound_source else "nobody"
        text = "certified" if backed else f"claimed by {method}"
        return Claim("status", True if backed else None, f"infeasible: {text}")
    return Claim(
        "status", outcome.status == Status.UNKNOWN, f"{outcome.status.value}, no placement"
    )


def _search(outcome: Outcome) -> Iterator[Claim]:
    """Reports of the search cannot be re-derived, but must not contradict the result."""
    proved = outcome.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if proved != (outcome.stopped_by == StoppedBy.PROOF):
        text = f"{outcome.stopped_by.value}, although the status is {outcome.status.value}"
        yield Claim("stopped by", False, text)
    if outcome.stopped_by == StoppedBy.GAP and not near_enough(outcome, _gap_asked(outcome)):
        yield Claim("stopped by", False, "gap, although the certified gap is larger than asked for")
    fault = next((text for text, wrong in _faults(outcome) if wrong), None)
    if fault is not None:
        yield Claim("trace", False, fault)


def _gap_asked(outcome: Outcome) -> float:
    gap = outcome.settings.get("gap")
    return float(gap) if isinstance(gap, int | float) and not isinstance(gap, bool) else 0.0


def _faults(outcome: Outcome) -> Iterator[tuple[str, bool]]:
    moments = [p.seconds for p in outcome.trace]
    counted = outcome.settings.get("work_limit") is not None  # then times are in units of work
    late = bool(moments) and not counted and moments[-1] > outcome.seconds + _ROUNDING
    yield "its times are not in order", moments != sorted(moments)
    yield "it continues after the end of the solve", late
    objectives = [p.objective for p in outcome.trace if p.objective is not None]
    if objectives:
        best, given = min(objectives), outcome.before_goals
        claimed = outcome.objective if given is None else given
        text = f"its best plan costs {best}, the outcome's {claimed}"
        yield text, best != claimed
    bounds = [p.bound for p in outcome.trace if p.bound is not None]
    if bounds and outcome.status != Status.INFEASIBLE:
        high, bound = max(bounds), outcome.bound
        text = f"its highest bound is {high}, the outcome's {bound}"
        yield text, bound is None or high > bound
