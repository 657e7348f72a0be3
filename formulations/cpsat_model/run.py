"""Build the model over a mask of options and let CP-SAT answer it once."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.cpsat_model.capacity import limit_resources
from formulations.cpsat_model.cuts import add_cuts
from formulations.cpsat_model.extract import values_of
from formulations.cpsat_model.fixed import limit_moves, pin_ranks
from formulations.cpsat_model.fusion import fuse
from formulations.cpsat_model.hints import fit_hint
from formulations.cpsat_model.loads import Loads
from formulations.cpsat_model.objective import Goal, set_goal
from formulations.cpsat_model.places import place_blocks
from formulations.cpsat_model.polish import give_hint
from formulations.cpsat_model.search import Found, search
from formulations.cpsat_model.symmetry import order_ranks
from formulations.cpsat_model.variables import Variables, options_chosen
from formulations.instance import Instance
from formulations.placement import Placement
from formulations.presolve import Presolved
from formulations.settings import Clock, Settings


@dataclass(frozen=True, eq=False)
class Run:
    """One model and CP-SAT's answer to it."""

    variables: Variables
    loads: Loads
    goal: Goal
    answer: Found


def run_model(
    instance: Instance,
    presolved: Presolved,
    hint: Placement | None,
    settings: Settings,
    clock: Clock,
    seconds: float,
) -> Run:
    """Build, hint and solve; see :func:`formulations.cpsat_model.search.search`.

    Raises
    ------
    OutOfTime
        When the clock ends before the model is built.
    """
    variables = Variables(instance, check=clock.check)
    ordered = bool(settings.options.get("symmetry", True))
    end = clock.seconds() + seconds
    loads, goal = build(variables, presolved, ordered)
    variables.check = None
    if hint is not None:
        plan = fit_hint(instance, presolved, hint, ordered)
        values = None if plan is None else values_of(variables, goal, plan)
        if values is not None:
            give_hint(variables, values)
    answer = search(variables, settings, clock, max(0.0, end - clock.seconds()), goal.scale)
    return Run(variables, loads, goal, answer)


def build(variables: Variables, presolved: Presolved, ordered: bool) -> tuple[Loads, Goal]:
    """Add every constraint family and the objective; one function each.

    Parameters
    ----------
    variables : Variables
        Empty; filled here.
    presolved : Presolved
    ordered : bool
        Whether to order ranks that no constraint tells apart.
    """
    options_chosen(variables, presolved.kept)
    place_blocks(variables)
    loads = Loads(variables)
    limit_resources(variables, loads)
    fuse(variables)
    pin_ranks(variables)
    limit_moves(variables)
    goal = set_goal(variables, loads)
    add_cuts(variables, loads, goal)
    if ordered:
        order_ranks(variables)
    return loads, goal
