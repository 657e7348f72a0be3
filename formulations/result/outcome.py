"""The Outcome, which every formulation returns; its objective is recomputed by the check."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from enum import StrEnum

from formulations.clock import Clock
from formulations.errors import InternalError
from formulations.instance import Instance
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.placement import Placement
from formulations.settings import TracePoint


class Status(StrEnum):
    """What is known of the optimum."""

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
    GAP = "gap"


def gap_between(objective: int | None, bound: int | None) -> float | None:
    """(objective − bound)/max(1, |objective|), None where either is unknown."""
    if objective is None or bound is None:
        return None
    return (objective - bound) / max(1, abs(objective))


def within_gap(objective: int | None, bound: int | None, gap: float) -> bool:
    """Whether a plan is within a gap of the bound; False for a gap of 0, which stops nothing."""
    between = gap_between(objective, bound)
    return gap > 0.0 and between is not None and between <= gap


@dataclass(frozen=True)
class BoundSource:
    """The method that a bound comes from.

    Attributes
    ----------
    method : str
        Such as ``cpsat``, ``highs``, ``lagrangian``.
    exact : bool
        Whether it was derived in integers (else in floating point).
    """

    method: str
    exact: bool


#: Source of a proof that less may move than must (:mod:`formulations.must_move`).
MUST_MOVE = BoundSource("what must move", exact=True)


@dataclass(frozen=True)
class GoalReached:
    """The value that a plan reaches for one of the goals after the objective.

    Attributes
    ----------
    goal : str
        Such as ``shards``.
    scope : str
        ``rank`` or ``machine`` of ``even_memory``, else empty.
    value : int
        To be minimised: thousandths of the capacity of the fullest place, rounded up
        (``even_memory``); units of use (``host_memory``); a count (``shards``, ``moves``); units of
        cost (``total``).
    bound : int or None
        Lower bound for plans that are as good in the objective and all earlier goals.
    met : bool
        Whether the value equals the bound, or is so low that a lower one would not matter.
    """

    goal: str
    scope: str
    value: int
    bound: int | None
    met: bool


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
        In the instance's objective, recomputed by :func:`formulations.result.check.check`.
    objectives : dict
        All three objectives of the placement; empty without one.
    bound : int or None
        No plan costs less, according to ``bound_source``.
    bound_source : BoundSource or None
    certificate : Certificate or None
    certified_bound : int or None
        The bound that the certificate proves.
    seconds : float
    trace : tuple of TracePoint
    solver, version : str
    settings : dict
    note : str
        One sentence for people, such as why nothing was found.
    detail : dict
        Further results of the formulation (JSON values).
    goals : tuple of GoalReached
        The goals after the objective, in order; empty if none was pursued.
    before_goals : int or None
        Objective of the best plan, if this plan costs more for the sake of a goal.
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
    goals: tuple[GoalReached, ...] = ()
    before_goals: int | None = None

    @property
    def gap(self) -> float | None:
        """(objective − bound)/max(1, |objective|), None where either is unknown."""
        return gap_between(self.objective, self.bound)

    def with_(self, **changes: object) -> Outcome:
        """A copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def proved_bound(self) -> int | None:
        """The bound if it was derived in integers, else the certified bound."""
        exact = self.bound_source is not None and self.bound_source.exact
        return self.bound if exact else self.certified_bound

    @property
    def to_beat(self) -> int:
        """The objective that a plan must beat to improve on this outcome's: its own, or the better
        one that it had before goals."""
        assert self.objective is not None
        given = self.before_goals
        return self.objective if given is None else min(given, self.objective)

    @property
    def certified_infeasible(self) -> bool:
        """Whether ``verify`` re-derives that there is no plan."""
        proof = self.certificate
        return self.bound_source == MUST_MOVE or (proof is not None and proof.kind == "infeasible")

    @property
    def closed(self) -> bool:
        """Whether objective and bound are equal, and the bound was derived in integers."""
        return self.objective is not None and self.proved_bound == self.objective


def found(
    instance: Instance,
    formulation: str,
    placement: Placement,
    stopped_by: StoppedBy,
    bound: int | None = None,
    bound_source: BoundSource | None = None,
    **rest: object,
) -> Outcome:
    """An Outcome with a placement; the objective is recomputed, the status follows from the bound.

    Raises
    ------
    InternalError
        When the check rejects the placement.

    A bound above the objective must be wrong, and :func:`formulations.solve.solve` discards it;
    a bound in floating point is lowered to the objective. A proof about costs that were rounded
    leaves a gap, and the search is then exhausted.
    """
    verdict = check(instance, placement)
    if not verdict.feasible:
        raise InternalError(f"{formulation} returned a plan that breaks: {verdict.violations[0]}")
    objective = verdict.objectives[instance.objective.value]
    if bound is not None and bound_source is not None and not bound_source.exact:
        bound = min(bound, objective)
    outcome = Outcome(
        status=Status.FEASIBLE,
        stopped_by=stopped_by,
        formulation=formulation,
        placement=placement,
        objective=objective,
        objectives=verdict.objectives,
        bound=bound,
        bound_source=bound_source,
    ).with_(**rest)
    if outcome.closed:
        return outcome.with_(status=Status.OPTIMAL, stopped_by=StoppedBy.PROOF)
    if outcome.stopped_by == StoppedBy.PROOF:
        return outcome.with_(stopped_by=StoppedBy.EXHAUSTED)
    return outcome


def with_plan(instance: Instance, outcome: Outcome, plan: Placement, most: int | None) -> Outcome:
    """The outcome with another plan, unless that costs more than ``most``; a plan below all of the
    trace is added to it."""
    better = found(instance, outcome.formulation, plan, outcome.stopped_by, outcome.bound,
                   outcome.bound_source, certified_bound=outcome.certified_bound)  # fmt: skip
    if most is None or better.objective is None or better.objective > most:
        return outcome
    trace = outcome.trace
    if trace and all(better.objective < p.objective for p in trace if p.objective is not None):
        moment = max(trace[-1].seconds, round(outcome.seconds, 4))
        point = TracePoint(moment, better.objective, outcome.bound, outcome.formulation)
        trace = (*trace, point)
    return outcome.with_(
        placement=plan, objective=better.objective, objectives=better.objectives,
        status=better.status, stopped_by=better.stopped_by, trace=trace,
    )  # fmt: skip


def why_stopped(clock: Clock) -> StoppedBy:
    """Why a clock that is over has stopped."""
    if clock.interrupted():
        return StoppedBy.INTERRUPTED
    counted = clock.counts and clock.seconds_left() > 0.0
    return StoppedBy.WORK_LIMIT if counted else StoppedBy.TIME_LIMIT


def nothing(formulation: str, stopped_by: StoppedBy, note: str = "", **rest: object) -> Outcome:
    """An Outcome without a placement and without a proof that none exists."""
    return Outcome(Status.UNKNOWN, stopped_by, formulation, note=note).with_(**rest)


def infeasible(formulation: str, source: BoundSource, note: str = "", **rest: object) -> Outcome:
    """An Outcome for an instance without a plan; ``source`` says which method proved it."""
    return Outcome(
        Status.INFEASIBLE, StoppedBy.PROOF, formulation, bound_source=source, note=note
    ).with_(**rest)


def certified_gap(outcome: Outcome) -> float | None:
    """(objective − certified bound)/max(1, |objective|), None where either is unknown."""
    return gap_between(outcome.objective, outcome.certified_bound)


def near_enough(outcome: Outcome, gap: float) -> bool:
    """Whether an outcome is certified to a gap, not counting what it gave up for goals."""
    given = outcome.before_goals
    best = outcome.objective if given is None else given
    return within_gap(best, outcome.certified_bound, gap)


def standing(outcome: Outcome) -> str:
    """The status, and how it was proved.

    Returns
    -------
    str
        ``certified optimal``; ``optimal by cpsat, certified to 0.31%``; ``feasible, certified to
        4.2%``; ``certified infeasible``; ``infeasible by cpsat``; ``unknown``. *Certified to x%*
        means that no plan is better by more than x% of the objective, rounded up, which ``verify``
        re-derives. If the optimum is proved and this plan costs more for the sake of a goal:
        ``certified optimal but for 0.006% given up for goals``.
    """
    status, source = outcome.status, outcome.bound_source
    by = f" by {source.method}" if source is not None else ""
    if status == Status.INFEASIBLE:
        return "certified infeasible" if outcome.certified_infeasible else f"infeasible{by}"
    if outcome.objective is None:
        return status.value
    if outcome.objective == outcome.certified_bound:
        return "certified optimal"
    best = outcome.before_goals
    if best is None or best != outcome.bound or source is None or not source.exact:
        word = f"optimal{by}" if status == Status.OPTIMAL else status.value
        return f"{word}, {_share(outcome)}"
    more = _ROUNDED_UP.divide(100 * (outcome.objective - best), max(1, abs(best)))
    but_for = f"but for {more:f}% given up for goals"
    if outcome.certified_bound == best:
        return f"certified optimal {but_for}"
    return f"optimal{by} {but_for}, {_share(outcome)}"


#: Rounded to two digits.
_ROUNDED_UP = Context(prec=2, rounding=ROUND_CEILING)


def without_share(told: str) -> str:
    """A :func:`standing` without the certified gap, to be shown beside it: ``optimal by cpsat``."""
    return told.partition(",")[0]


def _share(outcome: Outcome) -> str:
    objective, certified = outcome.objective, outcome.certified_bound
    if objective is None or certified is None:
        return "nothing certified"
    hundredths = -((certified - objective) * 10_000 // max(1, abs(objective)))
    if hundredths > 100 * 100:
        return "hardly anything certified"
    return f"certified to {hundredths // 100}.{hundredths % 100:02d}%"
