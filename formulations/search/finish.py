"""The finishing pass: as good a plan, with less in host memory, fewer shards, a lower total, memory
filled more evenly, and closer to the plan in production; or what a user put first
(:class:`formulations.settings.Goals`).

Table after table takes the best state, in that order of preferences, that costs the objective
nothing and breaks nothing, until no table can take a better one by itself. Then shards leave the
fullest rank as long as that lowers how full the fullest is.
"""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, IntArray, Scope
from formulations.instance.facts import per_option, shard_counts
from formulations.result.check import check
from formulations.result.placement import Placement
from formulations.search.anneal import Annealer
from formulations.settings import (
    DEFAULT_GOALS,
    EVEN_MEMORY,
    HOST_MEMORY,
    MOVES,
    SHARDS,
    TOTAL,
    Goals,
)

#: Shares of the objective by which a plan may be dearer on the way, as many tables in small steps
#: may make it cheaper in the end: two thousand tables on every rank leave them one after another.
SLACKS = (0.0, 1e-3, 1e-2)


def finished(
    instance: Instance,
    placement: Placement,
    goals: Goals = DEFAULT_GOALS,
) -> Placement:
    """A plan as good, or within the tolerance, that a user would rather have.

    Parameters
    ----------
    instance : Instance
    placement : Placement
        Feasible.
    goals : Goals
    """
    if not instance.num_tables:
        return placement
    before, name = check(instance, placement), instance.objective.value
    most, order = goals.most(before.objectives[name]), preferences(instance, goals)
    annealer = Annealer(instance)
    annealer.choose_from(instance.allowed)
    keep = goals.before(MOVES, EVEN_MEMORY)
    best, least = placement, (most + 1, 0)
    for slack in SLACKS:
        annealer.load(placement, [most])
        annealer.tidy(order, most + int(slack * abs(most)), keep)
        plan = annealer.placement()
        after = check(instance, plan)
        value = after.objectives[name]
        worth = (value if not goals.tolerance else most, annealer.preference_sum(order))
        if after.feasible and value <= most and worth < least:
            best, least = plan, worth
    return best


def preferences(instance: Instance, goals: Goals = DEFAULT_GOALS) -> IntArray:
    """Rank of every option anywhere, then of every option as in production, by the goals; int64
    array [2 × options], the least is the best."""
    counts = shard_counts(instance)
    host = [i for i, r in enumerate(instance.resources) if r.scope != Scope.RANK]
    room = [max(1, int(instance.resources[i].capacity.sum())) for i in host]
    use = per_option(instance, instance.shard_use[:, host] * counts[:, None]) / np.asarray(room)
    known = np.zeros(instance.num_tables, dtype=bool)
    known[[now.table for now in instance.current]] = True
    away = known[instance.table_of].astype(np.int64)
    of = {
        HOST_MEMORY: np.tile(use.sum(axis=1), 2),
        SHARDS: np.tile(per_option(instance, counts), 2),
        TOTAL: np.tile(per_option(instance, instance.shard_cost.sum(axis=1) * counts), 2),
        MOVES: np.append(away, np.zeros_like(away)),
    }
    keys = np.stack([of[goal] for goal in goals.order if goal in of], axis=1)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
