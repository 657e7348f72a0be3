"""The exact model in CP-SAT: every kind of place, every scope, every objective, in integers.

Settings of its own (``Settings.options``): ``symmetry`` (bool, default True) orders ranks that no
constraint tells apart; ``cores`` (bool, default True) proves large choices of options by small
cores where all places are fixed. ``work_limit`` counts CP-SAT's deterministic seconds, a core.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools import __version__ as ortools_version
from ortools.sat.python import cp_model

from formulations.check import check
from formulations.cpsat_model.core import CoreAnswer, solve_cores
from formulations.cpsat_model.extract import extract
from formulations.cpsat_model.polish import polish
from formulations.cpsat_model.run import Run, run_model
from formulations.cpsat_model.search import stopped_by
from formulations.cpsat_model.start import starting_plan
from formulations.errors import InternalError
from formulations.instance import Instance
from formulations.options import FLAG
from formulations.outcome import (
    BoundSource,
    Outcome,
    Status,
    found,
    infeasible,
    nothing,
    why_stopped,
)
from formulations.placement import Placement
from formulations.presolve import Presolved, presolve
from formulations.reduce import OptionBounds, option_bounds, places_are_fixed
from formulations.settings import Clock, OutOfTime, Settings

_SOURCE = BoundSource("cpsat", exact=True)
_SOLVER: dict[str, Any] = {"solver": "CP-SAT", "version": ortools_version}

#: Options from which a greedy plan is made to start from.
START_FROM = 50
#: Options beyond one a table from which solving by cores pays.
CORES_FROM = 500
OPTIONS = {"symmetry": FLAG, "cores": FLAG}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve exactly; see :func:`formulations.solve.solve`.

    Returns
    -------
    Outcome
        ``optimal`` and ``infeasible`` only with a proof in integers.

    Raises
    ------
    InternalError
        When CP-SAT's answer does not pass the check.
    UnsupportedInstance
        When numbers exceed CP-SAT's 62 bits.
    """
    presolved = presolve(instance)
    stuck = presolved.empty_table(instance)
    if stuck is not None:
        name = instance.table_names[stuck]
        note = f"no option of table {name!r} is allowed and fits"
        return infeasible("cpsat", BoundSource("presolve", exact=True), note, **_SOLVER)
    bounds = _core_bounds(instance, presolved.kept, settings)
    if bounds is not None:
        return _solve_by_cores(instance, presolved, bounds, settings, clock)
    hint = settings.hint
    if hint is None and settings.work_limit is None and _chooses_places(instance, presolved):
        hint = starting_plan(instance, settings, clock)
    try:
        run = run_model(instance, presolved, hint, settings, clock, clock.remaining())
    except OutOfTime:
        return _no_worse(instance, _unbuilt(clock), hint)
    outcome = _polished(run, _outcome(run, settings, clock), settings, clock)
    return _traced(_no_worse(instance, outcome, hint), clock)


def _unbuilt(clock: Clock) -> Outcome:
    return nothing(
        "cpsat", why_stopped(clock), "the time ended before the model was built", **_SOLVER
    )


def _no_worse(instance: Instance, outcome: Outcome, start: Placement | None) -> Outcome:
    """The plan to start from, where it is feasible and the search ended with less.

    Raises
    ------
    InternalError
        When CP-SAT calls the instance infeasible although that plan is feasible.
    """
    if start is None or not (verdict := check(instance, start)).feasible:
        return outcome
    if outcome.status == Status.INFEASIBLE:
        raise InternalError("CP-SAT calls an instance infeasible that has a plan")
    value = verdict.objectives[instance.objective.value]
    if outcome.objective is not None and outcome.objective <= value:
        return outcome
    why, bound = outcome.stopped_by, outcome.bound
    source = None if bound is None else _SOURCE
    return found(instance, "cpsat", start, why, bound, source, detail=outcome.detail, **_SOLVER)


def _chooses_places(instance: Instance, presolved: Presolved) -> bool:
    kept = presolved.kept
    return int(kept.sum()) >= START_FROM and not places_are_fixed(instance, kept)


def _core_bounds(
    instance: Instance, kept: NDArray[np.bool_], settings: Settings
) -> OptionBounds | None:
    """Bounds to solve by cores with; None where the whole model is better."""
    wanted = settings.options.get("cores", True) and settings.work_limit is None
    large = int(kept.sum()) - instance.num_tables >= CORES_FROM
    if not (wanted and large and places_are_fixed(instance, kept)):
        return None
    return option_bounds(instance, kept)


def _solve_by_cores(
    instance: Instance,
    presolved: Presolved,
    bounds: OptionBounds,
    settings: Settings,
    clock: Clock,
) -> Outcome:
    runs: dict[int, Run] = {}

    def solve_kept(core: NDArray[np.bool_], plan: Placement | None, seconds: float) -> Outcome:
        part = Presolved(core, presolved.replacement)
        try:
            run = run_model(instance, part, plan or settings.hint, settings, clock, seconds)
        except OutOfTime:
            return _unbuilt(clock)
        outcome = _outcome(run, settings, clock)
        if outcome.placement is not None:
            runs[id(outcome.placement)] = run
        return outcome

    answer = solve_cores(instance, bounds, solve_kept, clock)
    outcome = _of_cores(instance, answer, bounds, runs, settings, clock)
    return _traced(_no_worse(instance, outcome, settings.hint), clock)


def _of_cores(
    instance: Instance,
    answer: CoreAnswer,
    bounds: OptionBounds,
    runs: dict[int, Run],
    settings: Settings,
    clock: Clock,
) -> Outcome:
    detail: dict[str, object] = {"cores": answer.cores}
    if answer.best is None:
        if answer.outcome.status == Status.INFEASIBLE:
            return answer.outcome.with_(detail=detail)
        why = answer.outcome.stopped_by
        return nothing(
            "cpsat", why, bound=answer.bound, bound_source=_SOURCE, detail=detail, **_SOLVER
        )
    why = answer.outcome.stopped_by
    outcome = found(
        instance, "cpsat", answer.best, why, answer.bound, _SOURCE, detail=detail, **_SOLVER
    )
    outcome = _polished(runs[id(answer.best)], outcome, settings, clock)
    if not settings.certificate:
        return outcome
    from formulations.certify import with_certificate

    return with_certificate(instance, outcome, bounds.certificate)


def _outcome(run: Run, settings: Settings, clock: Clock) -> Outcome:
    """What one run proves and found about the options it was given."""
    answer, instance = run.answer, run.variables.instance
    if answer.status == cp_model.INFEASIBLE:
        return infeasible("cpsat", _SOURCE, **_SOLVER)
    why = stopped_by(answer.status, settings, clock)
    bound = None if answer.bound is None else answer.bound * run.goal.scale
    values = answer.values
    if values is None:
        return nothing("cpsat", why, bound=bound, bound_source=_SOURCE, **_SOLVER)
    placement = extract(run.variables, lambda i: int(values[i]))
    return found(instance, "cpsat", placement, why, bound, _SOURCE, **_SOLVER)


def _polished(run: Run, outcome: Outcome, settings: Settings, clock: Clock) -> Outcome:
    """The same outcome with a plan of lower total, then lower use, where time allows."""
    if outcome.placement is None or run.answer.values is None or clock.over():
        return outcome
    values = polish(run.variables, run.loads, run.goal, run.answer.values, settings, clock)
    placement = extract(run.variables, lambda i: int(values[i]))
    better = found(run.variables.instance, "cpsat", placement, outcome.stopped_by)
    if better.objective is None or better.objective > (outcome.objective or 0):
        return outcome
    return outcome.with_(
        placement=placement, objective=better.objective, objectives=better.objectives
    )


def _traced(outcome: Outcome, clock: Clock) -> Outcome:
    if outcome.objective is not None or outcome.bound is not None:
        clock.record(outcome.objective, outcome.bound, "cpsat")
    return outcome
