"""The exact model through PuLP with HiGHS (default) or CBC: the independent cross-check.

Settings of its own (``Settings.options``): ``solver``, ``"highs"`` or ``"cbc"``. These solvers
work in floating point: their plans are rounded and checked in integers, their bounds are labelled
so. CBC gives no bound. ``work_limit`` has no meaning here and is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pulp

from formulations.check import check
from formulations.instance import Instance
from formulations.mip_model.answer import rounded
from formulations.mip_model.backends import BACKENDS, Claim, Report
from formulations.mip_model.model import MipModel, build_choices
from formulations.mip_model.rows import add_capacities, set_objective
from formulations.mip_model.ties import fuse, limit_moves, pin
from formulations.options import one_of
from formulations.outcome import (
    BoundSource,
    Outcome,
    StoppedBy,
    found,
    infeasible,
    nothing,
    why_stopped,
)
from formulations.placement import Placement
from formulations.settings import Clock, OutOfTime, Settings

#: Feasibility tolerances on rows scaled to one: HiGHS's own, then one for a budget met to the byte.
TOLERANCES = (1e-6, 1e-9)
#: Relative error a floating-point bound may carry; it is lowered by as much.
ERROR = 1e-9
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
            model, unit = build(instance, clock.check)
            report = run(model.problem, settings, clock, tolerance)
        except OutOfTime:
            note = note or "the time ended before the model was built"
            return nothing("mip", why_stopped(clock), note, solver=name)
        outcome = _outcome(model, report, unit, name, settings, clock)
        if outcome is not None:
            return _traced(outcome, clock)
        note = f"{name} answered with a plan that its rounding errors make infeasible"
    return nothing("mip", StoppedBy.EXHAUSTED, note, **_who(name, report))


def build(instance: Instance, check: Callable[[], None] = lambda: None) -> tuple[MipModel, float]:
    """The model, and how many true cost units one unit of its objective stands for.

    ``check`` is called at every variable and row, and raises to give up.
    """
    model = MipModel(instance, check)
    build_choices(model)
    add_capacities(model)
    fuse(model)
    pin(model)
    limit_moves(model)
    return model, set_objective(model)


def _who(name: str, report: Report) -> dict[str, str]:
    version = report.version or f"with PuLP {pulp.__version__}"
    return {"solver": {"highs": "HiGHS", "cbc": "CBC"}[name], "version": version}


def _outcome(
    model: MipModel, report: Report, unit: float, name: str, settings: Settings, clock: Clock
) -> Outcome | None:
    """None: the answer does not survive the check."""
    source, who = BoundSource(name, exact=False), _who(name, report)
    if report.claim == Claim.INFEASIBLE:
        return infeasible("mip", source, **who)
    why = why_stopped(clock)
    bound = None if report.bound is None else _whole_bound(report.bound * unit)
    known = None if bound is None else source
    if report.claim == Claim.NOTHING:
        return nothing("mip", why, bound=bound, bound_source=known, **who)
    placement = rounded(model)
    if placement is None or not check(model.instance, placement).feasible:
        return None
    note = ""
    if report.claim == Claim.OPTIMAL:
        note = "" if bound is not None else f"{name} calls this optimal but states no bound"
        why = StoppedBy.EXHAUSTED
        bound = _proved(model.instance, placement, bound)
    return found(model.instance, "mip", placement, why, bound, known, note=note, **who)


def _whole_bound(bound: float) -> int:
    """A float bound lowered by its possible error, then rounded up to an integer."""
    return math.ceil(bound - ERROR * max(1.0, abs(bound)))


def _proved(instance: Instance, placement: Placement, bound: int | None) -> int | None:
    """The solver's own proof, where its bound agrees with the true objective within its error."""
    if bound is None:
        return None
    value = check(instance, placement).objectives[instance.objective.value]
    return value if value - bound <= 2 * ERROR * max(1, abs(value)) else bound


def _traced(outcome: Outcome, clock: Clock) -> Outcome:
    if outcome.objective is not None or outcome.bound is not None:
        clock.record(outcome.objective, outcome.bound, str(outcome.solver))
    return outcome
