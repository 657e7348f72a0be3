"""After the primary objective: lower the total, then Σ use/capacity, as far as time allows."""

from __future__ import annotations

import itertools

import numpy as np

from formulations.clock import Clock, OutOfTime
from formulations.cpsat import Asked, Use, solve_cpsat
from formulations.instance import Instance, IntArray, Objective
from formulations.model.build import Model, Parts, build
from formulations.model.loads import Row
from formulations.model.partition import by_rank
from formulations.model.placements import decode, fitted
from formulations.presolve import Presolved
from formulations.result.placement import Placement
from formulations.settings import Settings

#: Share of the time already spent, and the least and most of it, that a polishing step may take.
SHARE, LEAST, MOST = 0.25, 0.1, 5.0
#: Σ use/capacity is counted in parts of this.
FINENESS = 10**6


def polished(
    instance: Instance, presolved: Presolved, placement: Placement, settings: Settings, clock: Clock
) -> Placement:
    """A plan at least as good in the objective, then in the total, then in Σ use/capacity.

    The plan given comes back where nothing better is found or the model cannot hold it.
    """
    try:
        model = build(
            instance, by_rank(instance), Parts(keep=presolved.kept, cuts=False, check=clock.check)
        )
    except OutOfTime:
        return placement
    values = fitted(model, placement, presolved.replacement)
    if values is None:
        return placement
    return decode(model, polish(model, values, settings, clock))


def polish(model: Model, values: IntArray, settings: Settings, clock: Clock) -> IntArray:
    """Values at least as good as the given ones in the primary objective.

    First the total is lowered, then Σ over resources of use/capacity, each best effort and each
    without giving up what came before. The model is used up.
    """
    linear = model.linear
    if not settings.polish or linear.scale != 1:
        return values
    aims = [Row(-1, 1, linear.cost_columns, linear.cost), *_secondary(model)]
    for before, aim in itertools.pairwise(aims):
        if clock.over():
            break
        reached = int(before.coefficient @ values[before.column])
        linear.row(("kept",), before.column, before.coefficient, high=reached)
        linear.minimise(aim.column, aim.coefficient)
        amount = min(MOST, max(LEAST, SHARE * clock.now()))
        limits = clock.limits(amount, settings.seed, settings.workers)
        answer = solve_cpsat(linear, limits, values, Asked(Use.PLANS))
        clock.spend(answer.work)
        if answer.values is not None:
            values = answer.values
    return values


def _secondary(model: Model) -> list[Row]:
    instance, rows = model.columns.candidates.instance, []
    if instance.objective != Objective.TOTAL and model.goal.phases:
        rows.append(model.loads.everything(instance.shard_cost.sum(axis=1)))
    share = np.zeros(len(instance.shard_use), dtype=np.int64)
    for index, resource in enumerate(instance.resources):
        room = max(1, int(resource.capacity.sum()))
        share += (instance.shard_use[:, index].astype(float) / room * FINENESS).astype(np.int64)
    if share.any():
        rows.append(model.loads.everything(share))
    return rows
