"""The exact model through PuLP with HiGHS (default) or CBC: the independent cross-check.

Settings of its own (``Settings.options``): ``solver``, ``"highs"`` or ``"cbc"``. These solvers
work in floating point: their plans are rounded and checked in integers; their bounds are labelled
so. Nothing is *optimal* or *infeasible* on their word, only where a certificate proves it. CBC
gives no bound.
``work_limit`` has no meaning here and is ignored.
"""

from __future__ import annotations

import math

import pulp

from formulations.clock import Clock, OutOfTime
from formulations.instance import Instance
from formulations.mip_backends import BACKENDS, Claim, Report
from formulations.mip_model import MipModel, rounded
from formulations.options import one_of
from formulations.proof.prove import prove_infeasible
from formulations.result.check import check
from formulations.result.outcome import (
    BoundSource,
    Outcome,
    StoppedBy,
    found,
    infeasible,
    nothing,
    why_stopped,
)
from formulations.settings import Settings

#: Feasibility tolerances on rows scaled to one: HiGHS's own, then one for a budget met to the byte.
TOLERANCES = (1e-6, 1e-9)
#: Error a floating-point bound may carry, of itself and of the largest cost in the model; it is
#: lowered by as much. (Within HiGHS's tolerances of 1e-7 and 1e-6, 1e-8 has been seen.)
ERROR = 1e-6
OPTIONS = {"solver": one_of(BACKENDS)}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve in floating point, answer in integers; see :func:`formulations.solve.solve`.

    Returns
    -------
    Outcome
        ``unknown`` when the rounded answer breaks a constraint even at the tighter tolerance.

    Raises
    ------
    MissingSolver
        When the solver is not installed.
    """
    name = str(settings.options.get("solver", "highs"))
    run = BACKENDS[name]
    for table in range(instance.num_tables):
        if not instance.allowed[list(instance.options_of(table))].any():
            note = f"no option of table {instance.table_names[table]!r} is allowed"
            return infeasible("mip", BoundSource("presolve", exact=True), note, solver=name)
    note = ""
    for tolerance in TOLERANCES:
        try:
            model = MipModel(instance, clock.check)
            report = run(model.problem, settings, clock, tolerance)
        except OutOfTime:
            note = note or "the time ended before the model was built"
            return nothing("mip", why_stopped(clock), note, solver=name)
        outcome = _outcome(model, report, name, settings, clock)
        if outcome is not None:
            return outcome
        note = f"{name} answered with a plan that its rounding errors make infeasible"
    return nothing("mip", StoppedBy.EXHAUSTED, note, **_who(name, report))


def _who(name: str, report: Report) -> dict[str, str]:
    version = report.version or f"with PuLP {pulp.__version__}"
    return {"solver": {"highs": "HiGHS", "cbc": "CBC"}[name], "version": version}


def _outcome(
    model: MipModel, report: Report, name: str, settings: Settings, clock: Clock
) -> Outcome | None:
    """None: the answer does not survive the check."""
    source, who = BoundSource(name, exact=False), _who(name, report)
    if report.claim == Claim.INFEASIBLE:
        return _no_plan(model.instance, name, settings, clock, who)
    why = why_stopped(clock)
    bound = (
        None if report.bound is None else _whole_bound(model.instance, report.bound * model.unit)
    )
    known = None if bound is None else source
    if report.claim == Claim.NOTHING:
        return nothing("mip", why, bound=bound, bound_source=known, **who)
    placement = rounded(model)
    if placement is None or not check(model.instance, placement).feasible:
        return None
    note = ""
    if report.claim == Claim.OPTIMAL:
        why = StoppedBy.EXHAUSTED
        note = f"{name} calls this optimal, in floating point" + (
            "" if bound is not None else ", but states no bound"
        )
    return found(model.instance, "mip", placement, why, bound, known, note=note, **who)


def _no_plan(
    instance: Instance, name: str, settings: Settings, clock: Clock, who: dict[str, str]
) -> Outcome:
    """Infeasible where a certificate proves what the solver says in floating point."""
    proof = None
    if settings.certificate and not clock.over():
        seconds = None if clock.remaining() == math.inf else clock.remaining()
        proof = prove_infeasible(instance, seconds, settings.stop)
    if proof is not None:
        return infeasible("mip", BoundSource("certificate", exact=True), certificate=proof, **who)
    note = f"{name} finds no plan possible, in floating point; that proves nothing"
    return nothing("mip", StoppedBy.EXHAUSTED, note, **who)


def _whole_bound(instance: Instance, bound: float) -> int:
    """A float bound lowered by its possible error, then rounded up to an integer."""
    largest = float(abs(instance.shard_cost).max(initial=0))
    return math.ceil(bound - ERROR * max(abs(bound), largest))
