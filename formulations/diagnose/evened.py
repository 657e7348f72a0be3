"""The least use of a resource on its fullest rank, among plans that cost no more than a limit.

An ε-constraint (Haimes, Lasdon and Wismer, 1971): the objective becomes a constraint, the fullest
rank the objective. Sums of a rank are uses of a resource, so ``busiest_rank`` and ``total`` become
one more resource and one solve decides. ``step_time`` and ``pipelined_step`` are sums of peaks,
which no resource can limit: there the capacity is bisected, and every step asks for the least time
within it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from formulations.diagnose.questions import fullest
from formulations.instance import Instance, Objective, Resource, Scope
from formulations.result.check import check
from formulations.result.placement import Placement

#: Name of the resource that stands for the objective.
COST = "cost"
#: A bisection stops when it knows the value to one part in this many.
PARTS = 1000


@dataclass(frozen=True)
class Evened:
    """A plan, the use of its fullest rank, and a lower bound for all plans within the limits."""

    placement: Placement
    fullest: int
    bound: int


def least_fullest(
    instance: Instance, resource: str, most: int, start: Placement, budget: Budget
) -> Evened:
    """The plan whose fullest rank uses least of a resource.

    Parameters
    ----------
    instance : Instance
        Its other constraints hold as they are.
    resource : str
        Name of one of its resources of ranks.
    most : int
        The highest objective allowed.
    start : Placement
        A plan within all limits; returned if no better one is found.
    budget : Budget
        Time for all solves.
    """
    if instance.by_phase:
        return _bisected(instance, resource, most, start, budget)
    return _solved(limited(instance, most), resource, start, budget)


def limited(instance: Instance, most: int) -> Instance:
    """The instance without plans that cost more, as a resource of ranks or of the cluster.

    For ``busiest_rank`` and ``total``.
    """
    ranks = instance.objective == Objective.BUSIEST_RANK
    places = instance.num_ranks if ranks else 1
    capacity = np.full(places, most, dtype=np.int64)
    row = Resource(COST, Scope.RANK if ranks else Scope.CLUSTER, capacity)
    use = np.column_stack([instance.shard_use, instance.shard_cost.sum(axis=1)])
    return replace(instance, resources=(*instance.resources, row), shard_use=use)


def no_fuller(instance: Instance, resource: str, most: int) -> Instance:
    """The instance with at most this capacity of a resource at every place."""
    held = tuple(
        replace(r, capacity=np.minimum(r.capacity, most)) if r.name == resource else r
        for r in instance.resources
    )
    return replace(instance, resources=held)


def _solved(instance: Instance, resource: str, start: Placement, budget: Budget) -> Evened:
    """The least use of the fullest rank under the instance's constraints alone."""
    column = [r.name for r in instance.resources].index(resource)
    use = instance.shard_use[:, [column]]
    asked = replace(
        instance, phases=(resource,), hidden=(), objective=Objective.BUSIEST_RANK, shard_cost=use,
        reference=(),
    )  # fmt: skip
    outcome = budget.certifying().solve(asked, hint=start)
    plan = outcome.placement or start
    value = fullest(instance, plan, [resource])
    return Evened(plan, value, min(value, max(0, outcome.proved_bound or 0)))


def _bisected(
    instance: Instance, resource: str, most: int, start: Placement, budget: Budget
) -> Evened:
    whole = _solved(instance, resource, start, budget.part(0.25))
    value, cost = fullest(instance, start, [resource]), instance.objective.value
    curve = Curve(
        lambda capacity: no_fuller(instance, resource, capacity),
        lambda plan: fullest(instance, plan, [resource]),
        budget.certifying(),
    )
    for plan in (start, whole.placement):
        curve.take_plan(value, plan, check(instance, plan).objectives[cost])
    least, refuted = curve.least(
        whole.bound - 1, value, most, share=0.25, grain=max(1, value // PARTS)
    )
    known = curve.known.plan(least)
    plan = start if known is None or known[0] > most else known[1]
    return Evened(plan, fullest(instance, plan, [resource]), max(whole.bound, refuted + 1))
