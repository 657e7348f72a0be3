"""Pick by shape: the exact model where only options are chosen, else bounds and search together.

Where every shard's place is fixed, ``cpsat`` proves thousands of tables in seconds. Where shards
have a choice of place, ``scale`` is better at every size measured (benchmarks/torchrec-gap): its
bounds and option filter let the exact model, which it runs too, finish what it could not start.
What is left of the time goes into polishing the plan.
"""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, Where
from formulations.outcome import Outcome, found
from formulations.presolve import Presolved, presolve
from formulations.settings import Clock, Settings

#: Placement variables up to which the plan is polished in one exact model.
POLISH_UP_TO = 20_000
#: Share of the time limit kept for polishing, and the most seconds of it.
KEEP, MOST = 0.08, 5.0


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve with ``cpsat`` or ``scale``; see :func:`formulations.solve.solve`."""
    presolved = presolve(instance)
    variables = placement_variables(instance, presolved)
    if variables == 0:
        from formulations.cpsat import solve as exact

        return exact(instance, settings, clock)
    from formulations.scale import solve as large

    polish = settings.polish and settings.work_limit is None and variables <= POLISH_UP_TO
    with clock.holding_back(min(MOST, KEEP * (settings.time_limit or 0)) if polish else 0):
        outcome = large(instance, settings, clock)
    if polish and not clock.over():
        outcome = _polished(instance, presolved, outcome, settings, clock)
    return outcome


def placement_variables(instance: Instance, presolved: Presolved | None = None) -> int:
    """How many variables say where shards go, over the options worth keeping."""
    places = {
        Where.ANY_RANK: instance.num_ranks,
        Where.ANY_RANK_OF_ONE_MACHINE: instance.num_ranks,
        Where.ONE_MACHINE: len(instance.machines),
    }
    kept = (presolved or presolve(instance)).kept[instance.option_of]
    return sum(
        int(np.count_nonzero(kept & (instance.block_where == where))) * number
        for where, number in places.items()
    )


def _polished(
    instance: Instance, presolved: Presolved, outcome: Outcome, settings: Settings, clock: Clock
) -> Outcome:
    from formulations.cpsat_model.finish import polished

    if outcome.placement is None or outcome.objective is None:
        return outcome
    plan = polished(instance, presolved, outcome.placement, settings, clock)
    better = found(instance, "auto", plan, outcome.stopped_by, outcome.bound, outcome.bound_source)
    if better.objective is None or better.objective > outcome.objective:
        return outcome
    return outcome.with_(
        placement=plan, objective=better.objective, objectives=better.objectives,
        status=better.status, stopped_by=better.stopped_by,
    )  # fmt: skip
