"""The slowest ranks of a plan, where their time goes, and how even the ranks are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from formulations import Instance, Placement
from formulations.instance import IntArray, Scope
from formulations.result.check import compute_loads
from milp_planner.drawing.terminal import fitting_grid
from milp_planner.drawing.units import memory_name, show_bytes, show_time
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price

#: Ranks shown, and tables named of each.
RANKS, TABLES = 5, 4


@dataclass(frozen=True)
class SlowRow:
    """One rank.

    Attributes
    ----------
    rank, time : int
        Its number, and picoseconds over all phases.
    incoming, outgoing : int or None
        Bytes of ids and of embeddings of a step, these in the tables' own element type; None
        where this version does not offer the plan's options.
    tables : tuple of (str, int)
        Those that take most of its time.
    """

    rank: int
    time: int
    incoming: int | None
    outgoing: int | None
    tables: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Evenness:
    """Mean and largest value over all ranks.

    Attributes
    ----------
    what : str
        ``time``, a memory, ``in`` or ``out``.
    mean : float
    most, rank : int
        The largest, and where.
    """

    what: str
    mean: float
    most: int
    rank: int

    @property
    def above(self) -> float:
        """How much the largest lies above the mean, as a share of it."""
        return self.most / self.mean - 1 if self.mean else 0.0


@dataclass(frozen=True)
class SlowestInfo:
    """The slowest ranks, the slowest first, and how even all are."""

    rows: tuple[SlowRow, ...]
    evenness: tuple[Evenness, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def slowest_of(plan: Plan) -> SlowestInfo:
    """The slowest ranks of a plan that has tables."""
    instance, placement = plan.instance, plan.outcome.placement
    assert placement is not None
    loads = compute_loads(instance, placement)
    time, traffic = loads.cost.sum(axis=1), _traffic(plan, placement)
    slowest = np.argsort(-time, kind="stable")[:RANKS].tolist()
    shares = _shares(instance, placement)
    rows = tuple(
        SlowRow(rank, int(time[rank]), *_at(traffic, rank), _largest(instance, shares[:, rank]))
        for rank in slowest
    )
    found = {"time": time}
    for resource, use in zip(instance.resources, loads.use, strict=True):
        if resource.scope == Scope.RANK:
            found.setdefault(memory_name(resource.name), use)
    if traffic is not None:
        found |= {"in": traffic[:, 0], "out": traffic[:, 1]}
    return SlowestInfo(rows, tuple(
        Evenness(what, float(values.mean()), int(values.max()), int(values.argmax()))
        for what, values in found.items()
    ))  # fmt: skip


def _traffic(plan: Plan, placement: Placement) -> IntArray | None:
    """Bytes in and out of every rank, int64 array [ranks, 2]."""
    options = price(plan.model, plan.cluster, plan.profile)
    if tuple(options.names) != plan.instance.option_names:
        return None
    columns = np.stack([options.entries.incoming, options.entries.outgoing], axis=1)
    counted = replace(plan.instance, phases=("in", "out"), shard_cost=columns)
    return compute_loads(counted, placement).cost


def _at(traffic: IntArray | None, rank: int) -> tuple[int | None, int | None]:
    return (None, None) if traffic is None else (int(traffic[rank, 0]), int(traffic[rank, 1]))


def _shares(instance: Instance, placement: Placement) -> IntArray:
    """Time of every table on every rank, int64 array [tables, ranks]."""
    return np.stack([
        compute_loads(instance, placement, [table]).cost.sum(axis=1)
        for table in range(instance.num_tables)
    ])  # fmt: skip


def _largest(instance: Instance, times: IntArray) -> tuple[tuple[str, int], ...]:
    order = np.argsort(-times, kind="stable")[:TABLES].tolist()
    return tuple((instance.table_names[t], int(times[t])) for t in order if times[t])


def draw_slowest(info: SlowestInfo) -> RenderableType:
    """A row a rank with its top tables, then a line a measure."""
    rows = [
        [
            str(row.rank), show_time(row.time), show_bytes(row.incoming), show_bytes(row.outgoing),
            ", ".join(f"{name} {show_time(time)}" for name, time in row.tables),
        ]
        for row in info.rows
    ]  # fmt: skip
    headers = ("rank", "time", "in", "out", "most of it")
    grid = fitting_grid(headers, rows, {"most of it": 40}, ("most of it",), folded=("most of it",))
    told = [
        f"{each.what}: mean {_show(each, each.mean)}, most {_show(each, each.most)} on rank "
        f"{each.rank}, {each.above:.1%} above the mean"
        for each in info.evenness
    ]
    return Group(Text("the slowest ranks", style="bold"), grid, *map(Text, told))


def _show(each: Evenness, value: float) -> str:
    return show_time(round(value)) if each.what == "time" else show_bytes(round(value))
