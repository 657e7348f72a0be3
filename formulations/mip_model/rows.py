"""Capacity rows and the objective, scaled so that floating point sees numbers near one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pulp

from formulations.instance import IntArray, Objective, Scope
from formulations.mip_model.model import MipModel

Terms = dict[pulp.LpVariable, int]

#: Objective coefficients are brought below this: solvers compare objectives to about 1e-9.
LARGEST_COST = 1e6


def add_capacities(model: MipModel) -> None:
    """Σ use at a place ≤ its capacity, divided by the capacity (or the largest coefficient)."""
    instance = model.instance
    for index, resource in enumerate(instance.resources):
        column = instance.shard_use[:, index]
        if resource.scope == Scope.CLUSTER:
            _limit(model, everything(model, column), int(resource.capacity[0]))
            continue
        places = (
            [[r] for r in range(instance.num_ranks)]
            if resource.scope == Scope.RANK
            else [list(m) for m in instance.machines]
        )
        _limit_places(model, column, places, resource.capacity.tolist())


def _limit_places(
    model: MipModel, column: IntArray, places: list[list[int]], capacity: list[int]
) -> None:
    """Places that carry nothing of their own share one row for each size, at least capacity."""
    common = _common(model, column)
    bare: dict[int, int] = {}
    for ranks, room in zip(places, capacity, strict=True):
        own = _own(model, column, ranks)
        if own:
            _limit(model, common.plus(own, len(ranks)), room)
        else:
            bare[len(ranks)] = min(room, bare.get(len(ranks), room))
    for size, room in bare.items():
        _limit(model, common.plus({}, size), room)


def _limit(model: MipModel, terms: dict[pulp.LpVariable, float], room: int) -> None:
    if terms:
        unit = float(max(room, 1))
        model.add({v: c / unit for v, c in terms.items()}, "<=", room / unit)


class _Common:
    """What every rank carries: written out, or one variable where many rows need it."""

    def __init__(self, model: MipModel, terms: Terms) -> None:
        self._terms: dict[pulp.LpVariable, float] = dict(terms)
        if len(terms) > 4 and model.somewhere:
            unit = float(max(abs(c) for c in terms.values()))
            total = model.real()
            model.add({**{v: -c / unit for v, c in terms.items()}, total: 1.0}, "==", 0)
            self._terms = {total: unit}

    def plus(self, own: Terms, times: int) -> dict[pulp.LpVariable, float]:
        """``times`` the common part and the own terms of a place."""
        result: dict[pulp.LpVariable, float] = defaultdict(float)
        for terms, factor in ((self._terms, times), (own, 1)):
            for variable, coefficient in terms.items():
                result[variable] += factor * coefficient
        return dict(result)


def _common(model: MipModel, column: IntArray) -> _Common:
    terms: Terms = defaultdict(int)
    for variable, entry in model.everywhere:
        if column[entry]:
            terms[variable] += int(column[entry])
    return _Common(model, dict(terms))


def _own(model: MipModel, column: IntArray, ranks: Iterable[int]) -> Terms:
    terms: Terms = defaultdict(int)
    for rank in ranks:
        for variable, entry in model.somewhere.get(rank, ()):
            if column[entry]:
                terms[variable] += int(column[entry])
    return dict(terms)


def everything(model: MipModel, column: IntArray) -> dict[pulp.LpVariable, float]:
    """Σ over all shards, on ranks or not."""
    terms: Terms = _own(model, column, range(model.instance.num_ranks))
    result: dict[pulp.LpVariable, float] = defaultdict(float, terms)
    for variable, entry in model.everywhere:
        result[variable] += int(column[entry]) * model.instance.num_ranks
    for variable, entry, count in model.nowhere:
        result[variable] += int(column[entry]) * count
    return {v: c for v, c in result.items() if c}


def set_objective(model: MipModel) -> float:
    """Add the objective; returns how many true cost units one unit of it stands for."""
    cost = model.instance.shard_cost
    if model.instance.objective == Objective.TOTAL:
        terms = everything(model, cost.sum(axis=1))
        unit = _unit(terms.values())
        model.problem.setObjective(pulp.LpAffineExpression({v: c / unit for v, c in terms.items()}))
        return unit
    columns = [cost.sum(axis=1)]
    if model.instance.objective == Objective.STEP_TIME:
        columns = [cost[:, p] for p in range(cost.shape[1])]
    total: dict[pulp.LpVariable, float] = defaultdict(float)
    for column in columns:
        for variable, coefficient in _busiest(model, column).items():
            total[variable] += coefficient
    unit = _unit([float(np.abs(cost).max(initial=0))])
    model.problem.setObjective(pulp.LpAffineExpression({v: c / unit for v, c in total.items()}))
    return unit


def _unit(values: Iterable[float]) -> float:
    """1 while costs are small integers (exact), else what brings the largest to the limit."""
    return max(1.0, max((abs(v) for v in values), default=0.0) / LARGEST_COST)


def _busiest(model: MipModel, column: IntArray) -> dict[pulp.LpVariable, float]:
    """The busiest rank's sum: size·z with size·z ≥ Σ column at every rank.

    Where no rank carries anything of its own, it is the common sum itself.
    """
    common = _common(model, column)
    rows = [_own(model, column, [r]) for r in range(model.instance.num_ranks)]
    if not any(rows):
        return common.plus({}, 1)
    if not all(rows):
        rows = [{}, *[r for r in rows if r]]
    z, size = model.real(), float(max(1, int(column.max(initial=0))))
    for own in rows:
        terms = {v: c / size for v, c in common.plus(own, 1).items()}
        model.add({**terms, z: -1.0}, "<=", 0)
    return {z: size}
