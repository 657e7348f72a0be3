"""Pick by size: the exact model where it can prove, else the anytime method for large instances.

The size that counts is the number of placement variables: options whose shards have a choice of
place times the places they choose from. Where every shard's place is fixed the exact model proves
thousands of tables in seconds.
"""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, Where
from formulations.outcome import Outcome
from formulations.presolve import presolve
from formulations.settings import Clock, Settings

#: Placement variables up to which the exact model is tried alone.
EXACT_UP_TO = 20_000


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve with ``cpsat`` or ``scale``; see :func:`formulations.solve.solve`."""
    if placement_variables(instance) <= EXACT_UP_TO:
        from formulations.cpsat import solve as exact

        return exact(instance, settings, clock)
    from formulations.scale import solve as large

    return large(instance, settings, clock)


def placement_variables(instance: Instance) -> int:
    """How many variables say where shards go, over the options worth keeping."""
    places = {
        Where.ANY_RANK: instance.num_ranks,
        Where.ANY_RANK_OF_ONE_MACHINE: instance.num_ranks,
        Where.ONE_MACHINE: len(instance.machines),
    }
    kept = presolve(instance).kept[instance.option_of]
    return sum(
        int(np.count_nonzero(kept & (instance.block_where == where))) * number
        for where, number in places.items()
    )
