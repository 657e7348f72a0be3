"""What is printed after TorchRec's own statistics: objective, bound, gap and the guilty rank."""

from __future__ import annotations

from formulations import Outcome, Status
from milp_planner.integrations.torchrec.guilty import Guilty
from milp_planner.integrations.torchrec.rating import RatingName
from milp_planner.integrations.torchrec.units import milliseconds


def summary(
    outcome: Outcome,
    rating: float | None = None,
    objective: RatingName = "busiest_rank",
    held_up_by: Guilty | None = None,
) -> str:
    """A few lines: how good the plan is, how good any plan could be, and who says so.

    Parameters
    ----------
    outcome : Outcome
        Of an Instance written from TorchRec (picoseconds).
    rating : float, optional
        TorchRec's own figure for the same plan in milliseconds.
    objective : {"busiest_rank", "critical_path"}
    held_up_by : Guilty, optional
        The rank that the others wait for.
    """
    lines = [f"--- milp-planner: {_verdict(outcome)} ---"]
    if outcome.objective is not None:
        text = f"{objective.replace('_', ' ')} {milliseconds(outcome.objective):.6f} ms"
        if rating is not None:
            text += f" (TorchRec's rating {rating:.6f} ms)"
        lines.append(text)
    lines.append(_bound(outcome))
    if held_up_by is not None:
        lines.append(held_up_by.sentence())
    return "\n".join(lines)


def _verdict(outcome: Outcome) -> str:
    if outcome.status == Status.OPTIMAL:
        word = "optimal, proved"
    elif outcome.status == Status.FEASIBLE:
        word = "feasible"
    else:
        word = outcome.status.value
    return f"{word} ({outcome.formulation}, {outcome.seconds:.2f} s)"


def _bound(outcome: Outcome) -> str:
    if outcome.bound is None:
        return "bound: not known"
    source = outcome.bound_source
    whose = f" by {source.method}" if source else ""
    gap = f", gap {outcome.gap:.4%}" if outcome.gap is not None else ""
    text = f"bound {milliseconds(outcome.bound):.6f} ms{whose}{gap}"
    if outcome.certified_bound is not None:
        text += f"; certified {milliseconds(outcome.certified_bound):.6f} ms"
    return text
