"""The aggregate model: which option every table takes, and into which cell its shards go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.aggregate.cells import Cells, by_class
from formulations.aggregate.footprint import Footprint, FootprintBuilder
from formulations.aggregate.largest import add_largest_rows
from formulations.aggregate.linear import FREE, LinearModel
from formulations.aggregate.moves import add_move_rows
from formulations.aggregate.packing import add_packing_rows
from formulations.bounds.own import usable
from formulations.instance import Instance, IntArray, Objective, Scope


@dataclass(frozen=True, eq=False)
class Aggregate:
    """An aggregate model and where its parts are.

    Attributes
    ----------
    model : LinearModel
    cells : Cells
    column_of : dict of option to column
    footprint : Footprint
    peaks : list of int
        Columns of z: one for ``busiest_rank``, one a phase for ``step_time``, none for ``total``.
    peak_rows : int64 array [peaks, cells]
        Row of each peak in each cell (-1: none).
    resource_rows : list [resources] of int64 array
        Row per cell, machine group, or one for the cluster (-1: none).
    """

    model: LinearModel
    cells: Cells
    column_of: dict[int, int]
    footprint: Footprint
    peaks: list[int]
    peak_rows: IntArray
    resource_rows: list[IntArray]

    def chosen(self, values: np.ndarray) -> dict[int, float]:
        """Options with a positive share in a solution."""
        return {o: float(values[c]) for o, c in self.column_of.items() if values[c] > 1e-9}


@dataclass(frozen=True, eq=False)
class AggregateSettings:
    """What to put into an aggregate model.

    Attributes
    ----------
    cells : Cells, optional
        Default: :func:`formulations.aggregate.cells.by_class`.
    keep : bool array [options], optional
        Default: :func:`formulations.bounds.own.usable`.
    largest : bool
        Add the largest-shard and the packing rows.
    upper : int, optional
        Objective of a known plan: no plan worth finding costs more.
    typical : int, optional
        About what the objective will be; scales the peaks for floating-point solvers.
    slack : float
        Capacities are multiplied by it (1: a valid relaxation; below 1: room for packing).
    """

    cells: Cells | None = None
    keep: np.ndarray | None = None
    largest: bool = True
    upper: int | None = None
    typical: int | None = None
    slack: float = 1.0


def build(instance: Instance, settings: AggregateSettings | None = None) -> Aggregate:
    """Build the aggregate model of an instance.

    With ``slack`` 1 every placement maps to a solution of the same or smaller objective, so the
    optimum is a lower bound: the rows are sums of the placement's own rows over the ranks of a
    cell (docs/bounds.md).

    Parameters
    ----------
    instance : Instance
    settings : AggregateSettings, optional

    Returns
    -------
    Aggregate
    """
    settings = settings or AggregateSettings()
    cells = settings.cells or by_class(instance)
    keep = usable(instance) if settings.keep is None else settings.keep
    model = LinearModel()
    kept = np.flatnonzero(keep).tolist()
    column_of = dict(zip(kept, range(model.columns(len(kept)), len(kept)), strict=True))
    _one_option_each(instance, model, column_of)
    _one_level_each(instance, model, kept, column_of)
    footprint = FootprintBuilder(instance, cells, model, column_of).build()
    peaks = _peaks(instance, model, settings)
    features = Features(instance)
    peak_rows, resource_rows = _load_rows(
        instance, cells, model, footprint, features, peaks, settings.slack
    )
    aggregate = Aggregate(model, cells, column_of, footprint, peaks, peak_rows, resource_rows)
    if settings.largest:
        add_largest_rows(instance, aggregate, features)
        add_packing_rows(instance, aggregate, features, settings.upper)
    add_move_rows(instance, model, column_of)
    return aggregate


class Features:
    """What rows add up: the cost rows of the objective, then every resource.

    Attributes
    ----------
    cost : int64 array [entries, peaks]
        Sum over phases for ``busiest_rank`` and ``total``; each phase for ``step_time``.
    use : int64 array [entries, resources]
    """

    def __init__(self, instance: Instance) -> None:
        step = instance.objective == Objective.STEP_TIME
        self.cost: IntArray = (
            instance.shard_cost if step else instance.shard_cost.sum(axis=1, keepdims=True)
        )
        self.use: IntArray = instance.shard_use


def _one_option_each(instance: Instance, model: LinearModel, column_of: dict[int, int]) -> None:
    for table in range(instance.num_tables):
        columns = [column_of[o] for o in instance.options_of(table) if o in column_of]
        model.row(columns, [1] * len(columns), 1, 1)


def _one_level_each(
    instance: Instance, model: LinearModel, kept: Sequence[int], column_of: dict[int, int]
) -> None:
    """x of a (table, group, level) needs that level, and a group has one level."""
    users: dict[tuple[int, int], dict[int, list[int]]] = {}
    for option in kept:
        group = int(instance.option_group[option])
        if group >= 0:
            key = (group, int(instance.option_level[option]))
            table = int(instance.table_of[option])
            users.setdefault(key, {}).setdefault(table, []).append(column_of[option])
    groups: dict[int, list[int]] = {}
    for (group, _), tables in users.items():
        if len({t for (g, _), ts in users.items() if g == group for t in ts}) < 2:
            continue
        level = model.columns(1)
        groups.setdefault(group, []).append(level)
        for columns in tables.values():
            model.row([*columns, level], [1] * len(columns) + [-1], high=0)
    for levels in groups.values():
        model.row(levels, [1] * len(levels), high=1)


def _peaks(instance: Instance, model: LinearModel, settings: AggregateSettings) -> list[int]:
    upper = settings.upper
    if instance.objective == Objective.TOTAL:
        return []
    count = 1 if instance.objective == Objective.BUSIEST_RANK else len(instance.phases)
    most = _most_cost(instance) if upper is None else upper
    first = model.columns(count, upper=most, unit=settings.typical or max(1, most))
    peaks = list(range(first, first + count))
    for peak in peaks:
        model.objective[peak] = 1
    if count > 1 and upper is not None:
        model.row(peaks, [1] * count, high=upper)
    return peaks


def _most_cost(instance: Instance) -> int:
    """An objective no placement exceeds: every table at its dearest option, all on one rank."""
    from formulations.bounds.own import per_option, shard_counts

    if not instance.num_options:
        return 0
    cost = per_option(instance, instance.shard_cost.sum(axis=1) * shard_counts(instance))
    return int(np.maximum.reduceat(cost, instance.table_options[:-1]).sum())


def _load_rows(
    instance: Instance, cells: Cells, model: LinearModel, footprint: Footprint,
    features: Features, peaks: list[int], slack: float,
) -> tuple[IntArray, list[IntArray]]:  # fmt: skip
    peak_rows = np.full((len(peaks), cells.count), -1, dtype=np.int64)
    if instance.objective == Objective.TOTAL:
        _add_objective(model, footprint, features)
    for index, peak in enumerate(peaks):
        terms = _grouped(footprint, features.cost[:, index], footprint.cell)
        for cell, (columns, coefficients) in terms.items():
            size = int(cells.cell_size[cell])
            row = model.row(np.append(columns, peak), np.append(coefficients, -size), high=0)
            peak_rows[index, cell] = row
    resource_rows = []
    for index, resource in enumerate(instance.resources):
        part_of, capacity = _parts(resource.scope, resource.capacity, cells)
        key = np.where(footprint.cell >= 0, part_of[footprint.cell], -1)
        if resource.scope == Scope.CLUSTER:
            key = np.zeros_like(key)
        terms = _grouped(footprint, features.use[:, index], key)
        rows = np.full(len(capacity), -1, dtype=np.int64)
        for part, (columns, coefficients) in terms.items():
            room = int(capacity[part] * slack) if slack < 1.0 else int(capacity[part])
            if _may_bind(model, columns, coefficients, room):
                rows[part] = model.row(columns, coefficients, high=room)
        resource_rows.append(rows)
    return peak_rows, resource_rows


def _parts(scope: Scope, capacity: IntArray, cells: Cells) -> tuple[IntArray, IntArray]:
    """Part of each cell at a scope (cell, group or cluster), and the capacity of each part."""
    if scope == Scope.RANK:
        totals = np.zeros(cells.count, dtype=np.int64)
        np.add.at(totals, cells.cell_of, capacity)
        return np.arange(cells.count), totals
    if scope == Scope.MACHINE:
        totals = np.zeros(cells.groups, dtype=np.int64)
        np.add.at(totals, cells.group_of, capacity)
        return cells.cell_group, totals
    return np.zeros(cells.count, dtype=np.int64), capacity


def _may_bind(model: LinearModel, columns: IntArray, coefficients: IntArray, room: int) -> bool:
    """Whether the row's activity can exceed its limit at all (a loose test)."""
    upper = np.asarray([model.upper[c] for c in columns.tolist()], dtype=np.float64)
    return float((coefficients * upper).sum()) > room


def _grouped(
    footprint: Footprint, values: IntArray, key: IntArray
) -> dict[int, tuple[IntArray, IntArray]]:
    """Sum ``value·count`` of the terms per (key, column); keys below 0 are left out."""
    amount = values[footprint.entry] * footprint.count
    use = (key >= 0) & (amount != 0)
    key, column, amount = key[use], footprint.column[use], amount[use]
    order = np.lexsort((column, key))
    key, column, amount = key[order], column[order], amount[order]
    if not len(key):
        return {}
    first = np.flatnonzero(np.append(True, (np.diff(key) != 0) | (np.diff(column) != 0)))
    key, column, amount = key[first], column[first], np.add.reduceat(amount, first)
    result = {}
    for part in np.unique(key).tolist():
        where = key == part
        result[part] = (column[where], amount[where])
    return result


def _add_objective(model: LinearModel, footprint: Footprint, features: Features) -> None:
    zero = np.zeros_like(footprint.cell)
    for columns, coefficients in _grouped(footprint, features.cost[:, 0], zero).values():
        for column, coefficient in zip(columns.tolist(), coefficients.tolist(), strict=True):
            model.objective[column] = int(coefficient)


__all__ = ["FREE", "Aggregate", "AggregateSettings", "Features", "build"]
