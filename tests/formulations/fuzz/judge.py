"""Claims of an Outcome that the truth contradicts."""

from collections.abc import Iterator

from formulations.evidence.verify import verify
from formulations.instance import Instance
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status


def wrongs(instance: Instance, truth: int | None, outcome: Outcome) -> list[str]:
    """Everything in an Outcome that is false, one sentence each.

    Parameters
    ----------
    instance : Instance
    truth : int or None
        The optimum by enumeration; None: there is no plan.
    outcome : Outcome
    """
    return [
        *_status(truth, outcome),
        *_plan(instance, outcome),
        *_bounds(truth, outcome),
        *_trace(truth, outcome),
        *(f"verify: {c.name}: {c.text}" for c in verify(instance, outcome).claims if c.ok is False),
    ]


def _status(truth: int | None, outcome: Outcome) -> Iterator[str]:
    if outcome.status == Status.OPTIMAL and (outcome.objective != truth or not outcome.closed):
        yield f"optimal {outcome.objective}, bound {outcome.bound}, the truth is {truth}"
    if outcome.status == Status.INFEASIBLE and truth is not None:
        yield f"infeasible, but there is a plan of {truth}"


def _plan(instance: Instance, outcome: Outcome) -> Iterator[str]:
    if outcome.placement is None:
        if outcome.objective is not None or outcome.status in (Status.OPTIMAL, Status.FEASIBLE):
            yield f"{outcome.status.value} {outcome.objective} without a plan"
        return
    verdict = check(instance, outcome.placement)
    if not verdict.feasible:
        yield f"its plan breaks: {verdict.violations[0]}"
    elif verdict.objectives != outcome.objectives:
        yield f"objectives {outcome.objectives}, its plan costs {verdict.objectives}"


def _bounds(truth: int | None, outcome: Outcome) -> Iterator[str]:
    source = outcome.bound_source
    if source is not None and not source.exact and outcome.formulation != "mip":
        yield f"a bound of {source.method} in floating point"
    for name, value in (("bound", outcome.bound), ("certified bound", outcome.certified_bound)):
        if truth is not None and value is not None and value > truth:
            yield f"{name} {value} above the truth {truth}"
    if truth is not None and outcome.objective is not None and outcome.objective < truth:
        yield f"objective {outcome.objective} below the truth {truth}"


def _trace(truth: int | None, outcome: Outcome) -> Iterator[str]:
    for point in outcome.trace:
        if point.objective is not None and (truth is None or point.objective < truth):
            yield f"trace: {point.source} has a plan of {point.objective}, the truth is {truth}"
        if point.bound is not None and truth is not None and point.bound > truth:
            yield f"trace: {point.source} has a bound of {point.bound}, the truth is {truth}"
