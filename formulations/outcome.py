"""The Outcome: what every formulation returns, with an objective it did not compute itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from formulations.certificate import Certificate
from formulations.check import check
from formulations.errors import InternalError
from formulations.instance import Instance
from formulations.placement import Placement
from formulations.settings import Clock, TracePoint


class Status(StrEnum):
    """What is known about the answer."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


class StoppedBy(StrEnum):
    """Why the search ended."""

    PROOF = "proof"
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"


def gap_between(objective: int | None, bound: int | None) -> float | None:
    """(objective − bound)/max(1, |objective|), None where either is unknown."""
    if objective is None or bound is None:
        return None
    return (objective - bound) / max(1, abs(objective))


@dataclass(frozen=True)
class BoundSource:
    """Which method a bound comes from.

    Attributes
    ----------
    method : str
        Such as ``cpsat``, ``highs``, ``lagrangian``.
    exact : bool
        Whether it was derived in integers (else in floating point).
    """

    method: str
    exact: bool


@dataclass(frozen=True, eq=False)
class Outcome:
    """The answer of one formulation on one Instance.

    Attributes
    ----------
    status : Status
    stopped_by : StoppedBy
    formulation : str
    placement : Placement or None
    objective : int or None
        Of the instance's objective, recomputed by :func:`formulations.check.check`.
    objectives : dict
        All three objectives of the placement; empty without one.
    bound : int or None
        No plan can cost less (subject to ``bound_source``).
    bound_source : BoundSource or None
    certificate : Certificate or None
    certified_bound : int or None
        What the certificate proves by itself.
    seconds : float
    trace : tuple of TracePoint
    solver, version : str
    settings : dict
    note : str
        One sentence for people: why nothing was found, what was relaxed.
    detail : dict
        Anything a formulation adds (JSON values).
    """

    status: Status
    stopped_by: StoppedBy
    formulation: str
    placement: Placement | None = None
    objective: int | None = None
    objectives: dict[str, int] = field(default_factory=dict)
    bound: int | None = None
    bound_source: BoundSource | None = None
    certificate: Certificate | None = None
    certified_bound: int | None = None
    seconds: float = 0.0
    trace: tuple[TracePoint, ...] = ()
    solver: str = ""
    version: str = ""
    settings: dict[str, object] = field(default_factory=dict)
    note: str = ""
    detail: dict[str, object] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(objective − bound)/max(1, |objective|), None where either is unknown."""
        return gap_between(self.objective, self.bound)

    def with_(self, **changes: object) -> Outcome:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]


def found(
    instance: Instance,
    formulation: str,
    placement: Placement,
    stopped_by: StoppedBy,
    bound: int | None = None,
    bound_source: BoundSource | None = None,
    **rest: object,
) -> Outcome:
    """An Outcome with a placement: objective recomputed, status derived from the bound.

    Raises
    ------
    InternalError
        When the check rejects the placement, or the bound exceeds its objective although it was
        derived exactly. (A floating-point bound above the objective is clipped to it.)
    """
    verdict = check(instance, placement)
    if not verdict.feasible:
        raise InternalError(f"{formulation} returned a plan that breaks: {verdict.violations[0]}")
    objective = verdict.objectives[instance.objective.value]
    if bound is not None and bound > objective:
        if bound_source is None or bound_source.exact:
            raise InternalError(
                f"{formulation} claims the bound {bound} above its own plan's {objective}"
            )
        bound = objective
    proved = bound is not None and bound == objective
    outcome = Outcome(
        status=Status.OPTIMAL if proved else Status.FEASIBLE,
        stopped_by=StoppedBy.PROOF if proved else stopped_by,
        formulation=formulation,
        placement=placement,
        objective=objective,
        objectives=verdict.objectives,
        bound=bound,
        bound_source=bound_source,
    )
    return outcome.with_(**rest)


def why_stopped(clock: Clock) -> StoppedBy:
    """Which of its two reasons to stop a clock that is over has."""
    return StoppedBy.INTERRUPTED if clock.interrupted() else StoppedBy.TIME_LIMIT


def nothing(formulation: str, stopped_by: StoppedBy, note: str = "", **rest: object) -> Outcome:
    """An Outcome without a placement and without a proof that none exists."""
    return Outcome(Status.UNKNOWN, stopped_by, formulation, note=note).with_(**rest)


def infeasible(formulation: str, source: BoundSource, note: str = "", **rest: object) -> Outcome:
    """An Outcome that proves there is no placement; ``source`` says who proved it."""
    return Outcome(
        Status.INFEASIBLE, StoppedBy.PROOF, formulation, bound_source=source, note=note
    ).with_(**rest)
