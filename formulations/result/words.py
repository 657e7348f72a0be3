"""What stands behind a status, in words: what is certified first, then whose word the rest is."""

from __future__ import annotations

from formulations.result.outcome import Outcome, Status, gap_between


def certified_gap(outcome: Outcome) -> float | None:
    """(objective − certified bound)/max(1, |objective|), None where either is unknown."""
    return gap_between(outcome.objective, outcome.certified_bound)


def standing(outcome: Outcome) -> str:
    """A status with what is behind it.

    Returns
    -------
    str
        ``certified optimal``; ``optimal by cpsat, certified to 0.31%``; ``feasible, certified to
        4.2%``; ``certified infeasible``; ``infeasible by cpsat``; ``unknown``. *Certified to x%*
        says that no plan is better by more than x% of the objective, as ``verify`` re-derives; x
        is rounded up.
    """
    status, source = outcome.status, outcome.bound_source
    by = f" by {source.method}" if source is not None else ""
    if status == Status.INFEASIBLE:
        proof = outcome.certificate is not None and outcome.certificate.kind == "infeasible"
        return "certified infeasible" if proof else f"infeasible{by}"
    if outcome.objective is None:
        return status.value
    if outcome.objective == outcome.certified_bound:
        return "certified optimal"
    word = f"optimal{by}" if status == Status.OPTIMAL else status.value
    return f"{word}, {_share(outcome)}"


def _share(outcome: Outcome) -> str:
    objective, certified = outcome.objective, outcome.certified_bound
    if objective is None or certified is None:
        return "nothing certified"
    hundredths = -((certified - objective) * 10_000 // max(1, abs(objective)))
    if hundredths > 100 * 100:
        return "hardly anything certified"
    return f"certified to {hundredths // 100}.{hundredths % 100:02d}%"
