"""TorchRec's ``PlannerError``, carrying what our mathematics knows about the failure."""

from __future__ import annotations

from torchrec.distributed.planner.types import PlannerError, PlannerErrorType

from formulations import Outcome, Settings, Status
from milp_planner.integrations.torchrec.problem import Problem
from milp_planner.integrations.torchrec.shortfall import Shortfall, short_tiers, shortfalls


class NoPlan(PlannerError):
    """No plan: proved impossible, or not found within the limits.

    Attributes
    ----------
    error_type : PlannerErrorType
        ``INSUFFICIENT_STORAGE`` when proved and memory is what is missing, ``STRICT_CONSTRAINTS``
        when proved otherwise, ``OTHER`` when nothing was found and nothing was proved.
    outcome : Outcome or None
    shortfalls : tuple of Shortfall
        One a memory tier.
    """

    def __init__(
        self,
        message: str,
        error_type: PlannerErrorType = PlannerErrorType.OTHER,
        outcome: Outcome | None = None,
        shortfalls: tuple[Shortfall, ...] = (),
    ) -> None:
        super().__init__(message, error_type)
        self.outcome = outcome
        self.shortfalls = shortfalls


def no_plan(problem: Problem, outcome: Outcome, settings: Settings | None) -> NoPlan:
    """Explain a solve without a plan, tier by tier.

    Parameters
    ----------
    problem : Problem
    outcome : Outcome
        Without a placement.
    settings : Settings or None
        Time for each of the small solves behind the figures; None: only sums are compared.
    """
    found = shortfalls(problem.instance, settings)
    tiers = short_tiers(found)
    proved = outcome.status == Status.INFEASIBLE
    if proved:
        head = "No plan exists for this model on this topology (proved)."
        kind = (
            PlannerErrorType.INSUFFICIENT_STORAGE if tiers else PlannerErrorType.STRICT_CONSTRAINTS
        )
    else:
        head = (
            f"No plan was found within the limits ({outcome.stopped_by.value} after "
            f"{outcome.seconds:.1f} s), and none is ruled out; give it more time."
        )
        kind = PlannerErrorType.OTHER
    lines = [head, *("  " + shortfall.sentence() for shortfall in found)]
    if outcome.note:
        lines.append(f"  {outcome.note}")
    return NoPlan("\n".join(lines), kind, outcome, found)
