"""The exact model in CP-SAT: every kind of place, every scope, every objective, in integers.

Settings of its own (``Settings.options``): ``symmetry`` (bool, default True) orders ranks that no
constraint tells apart. ``work_limit`` counts CP-SAT's deterministic seconds.
"""

from __future__ import annotations

from typing import Any

from ortools import __version__ as ortools_version
from ortools.sat.python import cp_model

from formulations.cpsat_model.capacity import limit_resources
from formulations.cpsat_model.cuts import add_cuts
from formulations.cpsat_model.extract import extract, values_of
from formulations.cpsat_model.fixed import limit_moves, pin_ranks
from formulations.cpsat_model.fusion import fuse
from formulations.cpsat_model.hints import fit_hint
from formulations.cpsat_model.loads import Loads
from formulations.cpsat_model.objective import Goal, set_goal
from formulations.cpsat_model.places import place_blocks
from formulations.cpsat_model.polish import give_hint, polish
from formulations.cpsat_model.search import Found, search, stopped_by
from formulations.cpsat_model.symmetry import order_ranks
from formulations.cpsat_model.variables import Variables, options_chosen
from formulations.instance import Instance
from formulations.outcome import BoundSource, Outcome, found, infeasible, nothing
from formulations.presolve import Presolved, presolve
from formulations.settings import Clock, Settings

_SOURCE = BoundSource("cpsat", exact=True)
_SOLVER: dict[str, Any] = {"solver": "CP-SAT", "version": ortools_version}


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve exactly; see :func:`formulations.solve.solve`.

    Returns
    -------
    Outcome
        ``optimal`` and ``infeasible`` only with CP-SAT's proof, in integers.

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
        return infeasible(
            "cpsat", BoundSource("presolve", exact=True),
            f"no option of table {name!r} is allowed and fits", **_SOLVER,
        )  # fmt: skip
    variables = Variables(instance)
    loads, goal = build(variables, presolved, settings)
    _hint(variables, goal, presolved, settings)
    answer = search(variables, settings, clock, clock.remaining(), goal.scale)
    return _outcome(variables, loads, goal, answer, settings, clock)


def build(variables: Variables, presolved: Presolved, settings: Settings) -> tuple[Loads, Goal]:
    """Add every constraint family and the objective; one function each."""
    options_chosen(variables, presolved.kept)
    place_blocks(variables)
    loads = Loads(variables)
    limit_resources(variables, loads)
    fuse(variables)
    pin_ranks(variables)
    limit_moves(variables)
    goal = set_goal(variables, loads)
    add_cuts(variables, loads, goal)
    if _ordered(settings):
        order_ranks(variables, loads)
    return loads, goal


def _ordered(settings: Settings) -> bool:
    return bool(settings.options.get("symmetry", True))


def _hint(variables: Variables, goal: Goal, presolved: Presolved, settings: Settings) -> None:
    if settings.hint is None:
        return
    plan = fit_hint(variables.instance, presolved, settings.hint, _ordered(settings))
    values = None if plan is None else values_of(variables, goal, plan)
    if values is not None:
        give_hint(variables, values)


def _outcome(
    variables: Variables, loads: Loads, goal: Goal, answer: Found,
    settings: Settings, clock: Clock,
) -> Outcome:  # fmt: skip
    if answer.status == cp_model.INFEASIBLE:
        return infeasible("cpsat", _SOURCE, **_SOLVER)
    why = stopped_by(answer.status, settings, clock)
    bound = None if answer.bound is None else answer.bound * goal.scale
    if answer.values is None:
        return nothing("cpsat", why, bound=bound, bound_source=_SOURCE, **_SOLVER)
    values = polish(variables, loads, goal, answer.values, settings, clock)
    placement = extract(variables, lambda i: int(values[i]))
    outcome = found(variables.instance, "cpsat", placement, why, bound, _SOURCE, **_SOLVER)
    if outcome.objective is not None:
        clock.record(outcome.objective, outcome.bound, "cpsat")
    return outcome
