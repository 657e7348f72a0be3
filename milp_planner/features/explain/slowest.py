"""Which ranks are slowest and what their time is for, and how even all ranks are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from rich.console import RenderableType

from formulations import Placement
from formulations.instance import IntArray, Scope
from formulations.result.check import compute_loads
from milp_planner.drawing.grid import Grid, headed
from milp_planner.drawing.units import memory_name, show_bytes, show_time
from milp_planner.features.plan.use import Contributions
from milp_planner.files import Facts
from milp_planner.plans.compile import memories
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price

#: Numbers of ranks to show, and of tables to name for each.
RANKS, TABLES = 5, 4


@dataclass(frozen=True)
class SlowRow:
    """One of the slowest ranks."""

    rank: int
    time: int
    """Its time over all phases, in picoseconds."""
    incoming: int | None
    outgoing: int | None
    """Bytes of ids received and embeddings sent per step, embeddings in the element type that
    lookups return; None if this version does not offer the plan's options."""
    tables: tuple[tuple[str, int], ...]
    """The tables that take most of its time, with their times."""


@dataclass(frozen=True)
class Imbalance:
    """How far the shares p of k ranks deviate from 1/k, in the measures of TorchRec's statistics:
    from 0 (all alike) to 1."""

    variation: float
    """max |p − 1/k|"""
    distance: float
    """Σ |p − 1/k|, the only measure that may reach 2."""
    chi: float
    """Σ (p − 1/k)² · k, divided by its maximum, k − 1."""
    kl: float
    """Σ p · ln(k·p), divided by its maximum, ln k."""


def imbalance_of(values: IntArray) -> Imbalance:
    """The imbalance of one value per rank, int64 array [ranks]."""
    ranks, total = len(values), int(values.sum())
    if ranks < 2 or not total:
        return Imbalance(0.0, 0.0, 0.0, 0.0)
    share = values / total
    off, some = np.abs(share - 1 / ranks), share[share > 0]
    return Imbalance(
        variation=float(off.max()),
        distance=float(off.sum()),
        chi=float((off**2).sum() * ranks / (ranks - 1)),
        kl=float((some * np.log(ranks * some)).sum() / np.log(ranks)),
    )


@dataclass(frozen=True)
class Evenness:
    """How evenly one quantity is spread over all ranks."""

    what: str
    """``time``, a memory, ``in`` or ``out``."""
    mean: float
    most: int
    rank: int
    """The largest value, and its rank."""
    imbalance: Imbalance

    @property
    def above(self) -> float:
        """Excess of the largest value over the mean, as a share of the mean."""
        return self.most / self.mean - 1 if self.mean else 0.0


@dataclass(frozen=True)
class SlowestInfo(Facts):
    """The slowest ranks, in descending order of time, and how even all ranks are."""

    rows: tuple[SlowRow, ...]
    evenness: tuple[Evenness, ...]


def slowest_of(plan: Plan) -> SlowestInfo:
    """The slowest ranks of a plan that has tables."""
    instance, placement = plan.instance, plan.outcome.placement
    assert placement is not None
    loads = compute_loads(instance, placement)
    time, traffic = loads.cost.sum(axis=1), _traffic(plan, placement)
    slowest = np.argsort(-time, kind="stable")[:RANKS].tolist()
    tables = Contributions(instance, placement)
    shares = tables.cost.sum(axis=2)
    rows = tuple(
        SlowRow(
            rank=rank,
            time=int(time[rank]),
            incoming=None if traffic is None else int(traffic[rank, 0]),
            outgoing=None if traffic is None else int(traffic[rank, 1]),
            tables=tuple((s.table, s.amount) for s in tables.largest(shares[:, rank], TABLES)),
        )
        for rank in slowest
    )
    found = {"time": time}
    for index, resource in memories(instance):
        if resource.scope == Scope.RANK:
            found.setdefault(memory_name(resource.name), loads.use[index])
    if traffic is not None:
        found |= {"in": traffic[:, 0], "out": traffic[:, 1]}
    return SlowestInfo(rows, tuple(
        Evenness(
            what, float(values.mean()), int(values.max()), int(values.argmax()),
            imbalance_of(values),
        )
        for what, values in found.items()
    ))  # fmt: skip


def _traffic(plan: Plan, placement: Placement) -> IntArray | None:
    """Bytes into and out of every rank, int64 array [ranks, 2]."""
    options = price(plan.model, plan.cluster, plan.profile)
    if tuple(options.names) != plan.instance.option_names:
        return None
    columns = np.stack([options.entries.incoming, options.entries.outgoing], axis=1)
    counted = replace(plan.instance, phases=("in", "out"), shard_cost=columns)
    return compute_loads(counted, placement).cost


def draw_slowest(info: SlowestInfo) -> RenderableType:
    """One row per rank with its costliest tables, then how even all ranks are."""
    slow = Grid.plain(
        ("#rank", "#time", "#in", "#out", "most of it"),
        [
            (
                str(row.rank),
                show_time(row.time),
                show_bytes(row.incoming),
                show_bytes(row.outgoing),
                ", ".join(f"{name} {show_time(time)}" for name, time in row.tables),
            )
            for row in info.rows
        ],
        {"most of it": 40},
        folded=("most of it",),
    )
    head = ("#", "#mean", "#most", "#rank", "#above", "#variation", "#distance", "#chi²", "#KL")
    measures = ("variation", "distance", "chi", "kl")
    even = [
        (
            each.what,
            *(_show(each, value) for value in (each.mean, each.most)),
            str(each.rank),
            f"{each.above:.1%}",
            *(f"{getattr(each.imbalance, m):.3f}" for m in measures),
        )
        for each in info.evenness
    ]
    title = "how even the ranks are; the last four as TorchRec prints them, 0 where all are alike"
    evenness = headed(title, Grid.plain(head, even))
    return headed("the slowest ranks", slow, evenness)


def _show(each: Evenness, value: float) -> str:
    return show_time(round(value)) if each.what == "time" else show_bytes(round(value))
