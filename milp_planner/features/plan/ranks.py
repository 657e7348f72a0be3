"""The load of every rank and machine, how even it is, and which ranks are slowest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from formulations import Instance, Placement
from formulations.instance import IntArray, Resource, Scope
from formulations.result.check import Loads, compute_loads
from milp_planner.drawing.page import fitting_grid
from milp_planner.drawing.units import (
    memory_name,
    show_amount,
    show_bytes,
    show_ranks,
    show_share,
    show_time,
    time_unit,
)
from milp_planner.files import Facts
from milp_planner.plans.ledger import LedgerInfo, PlaceBytes
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price

#: Above this many ranks, rows stand for machines.
FOLD_ABOVE = 64


@dataclass(frozen=True)
class Usage:
    """Use and capacity of one resource at one place, in bytes (the instance's unit)."""

    resource: str
    used: int
    capacity: int
    kept: int = field(default=0, kw_only=True)
    """How much of the capacity must stay free, if ``capacity`` is a whole memory."""

    @property
    def over(self) -> bool:
        """Whether the use exceeds what is allowed."""
        return self.used > self.capacity - self.kept


@dataclass(frozen=True)
class RankRow:
    """The load of one rank."""

    rank: int
    machine: int
    usage: tuple[Usage, ...]
    """Usage of the resources that ranks have."""
    phases: tuple[int, ...]
    """Time in each phase."""
    cost: int
    """Sum over the phases."""
    critical: tuple[bool, ...]
    """For each phase, whether no rank is slower."""


@dataclass(frozen=True)
class MachineRow:
    """The load of one machine: its own resources, and the extremes over its ranks."""

    machine: int
    ranks: tuple[int, ...]
    usage: tuple[Usage, ...]
    """Usage of the resources that machines have."""
    fullest: tuple[Usage, ...]
    """For each rank resource, the usage of the rank with the largest share in use."""
    phases: tuple[int, ...]
    """Largest time of one of its ranks in each phase."""
    cost: int
    """Largest ``cost`` of one of its ranks."""


@dataclass(frozen=True)
class RanksInfo(Facts):
    """All ranks and machines of a plan."""

    phases: tuple[str, ...]
    rows: tuple[RankRow, ...]
    machines: tuple[MachineRow, ...]
    barriers: tuple[int, ...]
    """Largest time over all ranks in each phase: their sum is ``step_time``."""
    time_unit: str

    @property
    def folded(self) -> bool:
        """Whether drawings show one row per machine instead of one per rank."""
        return len(self.rows) > FOLD_ABOVE

    def busiest(self, count: int) -> tuple[RankRow, ...]:
        """The ``count`` costliest ranks, and one that sets each barrier, in rank order."""
        chosen = {row.rank for row in sorted(self.rows, key=lambda r: (-r.cost, r.rank))[:count]}
        for phase, barrier in enumerate(self.barriers):
            slowest = [row.rank for row in self.rows if row.critical[phase]]
            if barrier and chosen.isdisjoint(slowest):
                chosen.add(slowest[0])
        return tuple(row for row in self.rows if row.rank in chosen)


AnyUsage = TypeVar("AnyUsage", bound=Usage)


def by_memory(usage: Iterable[AnyUsage]) -> dict[str, AnyUsage]:
    """The fullest resource of each memory; all ``hbm:NAME``, one per collective, limit one HBM."""
    fullest: dict[str, AnyUsage] = {}
    for use in usage:
        name = memory_name(use.resource)
        known = fullest.get(name)
        if known is None or use.used * known.capacity > known.used * use.capacity:
            fullest[name] = use
    return fullest


def ranks_of(
    instance: Instance, placement: Placement, ledger: LedgerInfo | None = None
) -> RanksInfo:
    """The loads of a well-formed placement, rank by rank and machine by machine.

    With a ledger, usage is of whole memories with everything in them; else of the instance's
    resources.
    """
    loads = compute_loads(instance, placement)
    slowest = loads.cost.max(axis=0)
    found = RanksInfo(
        phases=instance.phases,
        rows=tuple(_rank_row(instance, loads, r, slowest) for r in range(instance.num_ranks)),
        machines=tuple(_machine_row(instance, loads, m) for m in range(len(instance.machines))),
        barriers=tuple(int(v) for v in slowest),
        time_unit=instance.time_unit,
    )
    return found if ledger is None else _in_whole(found, ledger)


def _in_whole(info: RanksInfo, ledger: LedgerInfo) -> RanksInfo:
    """The same rows with the usage of whole memories."""
    hbm = [whole_usage("hbm", place) for place in ledger.hbm]
    shared = [(name, places) for name, scope, places in ledger.memories if scope == "machine"]
    rows = [replace(row, usage=tuple(hbm[row.rank : row.rank + 1])) for row in info.rows]
    machines = []
    for each in info.machines:
        of = [hbm[rank] for rank in each.ranks] if hbm else []
        most = (max(of, key=lambda use: use.used / max(1, use.capacity)),) if of else ()
        here = tuple(whole_usage(name, places[each.machine]) for name, places in shared)
        machines.append(replace(each, usage=here, fullest=most))
    return replace(info, rows=tuple(rows), machines=tuple(machines))


def whole_usage(memory: str, place: PlaceBytes) -> Usage:
    """Usage of a whole memory at its fullest moment."""
    return Usage(memory, place.used, place.whole, kept=place.headroom)


def _rank_row(instance: Instance, loads: Loads, rank: int, slowest: np.ndarray) -> RankRow:
    cost = loads.cost[rank]
    return RankRow(
        rank=rank,
        machine=int(instance.machine_of[rank]),
        usage=tuple(_usage(instance, loads, Scope.RANK, rank)),
        phases=tuple(int(v) for v in cost),
        cost=int(cost.sum()),
        critical=tuple(bool(v) for v in (cost == slowest) & (cost > 0)),
    )


def _machine_row(instance: Instance, loads: Loads, machine: int) -> MachineRow:
    ranks = list(instance.machines[machine])
    cost = loads.cost[ranks]
    fullest = [
        _fullest(resource, use, ranks)
        for resource, use in zip(instance.resources, loads.use, strict=True)
        if resource.scope == Scope.RANK
    ]
    return MachineRow(
        machine=machine,
        ranks=tuple(ranks),
        usage=tuple(_usage(instance, loads, Scope.MACHINE, machine)),
        fullest=tuple(fullest),
        phases=tuple(int(v) for v in cost.max(axis=0)),
        cost=int(cost.sum(axis=1).max()),
    )


def _usage(instance: Instance, loads: Loads, scope: Scope, place: int) -> Iterator[Usage]:
    for resource, use in zip(instance.resources, loads.use, strict=True):
        if resource.scope == scope:
            yield Usage(resource.name, int(use[place]), int(resource.capacity[place]))


def _fullest(resource: Resource, use: np.ndarray, ranks: list[int]) -> Usage:
    share = use[ranks] / np.maximum(resource.capacity[ranks], 1)
    rank = ranks[int(np.argmax(share))]
    return Usage(resource.name, int(use[rank]), int(resource.capacity[rank]))


#: Most machines to show; one line counts the rest.
MOST_MACHINES = 40


def draw_ranks(info: RanksInfo, everything: bool = False) -> RenderableType:
    """The ranks (folded into machines if there are many), then the machines' own resources."""
    if not any(row.cost or row.usage for row in info.rows):
        return Group(*_machines(info))  # nothing is on ranks
    if info.folded and not everything:
        return _folded(info)
    usage = by_memory(info.rows[0].usage)
    heads = ["rank", "mach", *_usage_heads(usage)]
    heads += [phase.replace("_", "\n", 1) for phase in (*info.phases, "sum")]
    rows: list[Sequence[str | Text]] = [_rank_cells(info, row) for row in info.rows]
    slowest = [_time(info, v) for v in (*info.barriers, _most(info))]
    last = ["max", *[""] * (1 + 3 * len(usage)), *slowest]
    rows.append([Text(text, style="bold") for text in last])
    unit = f", times in {_unit(info)[0]}" if info.time_unit == "ps" else ""
    title = Text(f"per rank{unit} (bold: the slowest of a phase)", style="bold")
    return Group(title, fitting_grid(heads, rows, {}), *_machines(info))


def _folded(info: RanksInfo) -> RenderableType:
    """One row per machine with its fullest and slowest rank; the least busy are only counted."""
    shown = sorted(info.machines, key=lambda m: (-m.cost, m.machine))[:MOST_MACHINES]
    first = info.machines[0]
    heads = ["mach", "ranks", *_usage_heads(by_memory(first.usage))]
    heads += [*_usage_heads(by_memory(first.fullest), "fullest "), "slowest sum"]
    rows: list[list[str | Text]] = [
        [str(row.machine), show_ranks(row.ranks, -1), *_usage_cells(info, row.usage),
         *_usage_cells(info, row.fullest), _time(info, row.cost)]
        for row in sorted(shown, key=lambda m: m.machine)
    ]  # fmt: skip
    table = fitting_grid(heads, rows, {})
    hidden = len(info.machines) - len(shown)
    note = [Text(f"… and {hidden} less busy machines (--all shows every rank)")] if hidden else []
    pairs = zip(info.phases, info.barriers, strict=True)
    slowest = " · ".join(f"{name} {_time(info, value)}" for name, value in pairs)
    unit = f", times in {_unit(info)[0]}" if info.time_unit == "ps" else ""
    title = f"per machine{unit} ({len(info.rows)} ranks folded; --all shows them)"
    phases = Text(f"slowest rank of each phase: {slowest}")
    return Group(Text(title, style="bold"), table, *note, phases)


def _machines(info: RanksInfo) -> list[RenderableType]:
    if not info.machines[0].usage:
        return []
    heads = ["mach", "ranks", *_usage_heads(by_memory(info.machines[0].usage))]
    rows: list[list[str | Text]] = [
        [str(row.machine), show_ranks(row.ranks, -1), *_usage_cells(info, row.usage)]
        for row in info.machines
    ]
    return [Text("per machine", style="bold"), fitting_grid(heads, rows, {})]


def _usage_heads(memories: Iterable[str], prefix: str = "") -> list[str]:
    """Three headings per memory."""
    return [head for name in memories for head in (f"{prefix}{name}", "of", "%")]


def _usage_cells(info: RanksInfo, usage: Iterable[Usage]) -> list[Text]:
    cells = []
    for use in by_memory(usage).values():
        style = "bold red" if use.over else ""
        shown = [show_amount(v, info.time_unit) for v in (use.used, use.capacity)]
        share = show_share(use.used, use.capacity)
        cells += [Text(text, style=style) for text in (*shown, share.rstrip("%"))]
    return cells


def _rank_cells(info: RanksInfo, row: RankRow) -> list[Text]:
    cells = [Text(str(row.rank)), Text(str(row.machine)), *_usage_cells(info, row.usage)]
    for value, critical in zip(row.phases, row.critical, strict=True):
        cells.append(Text(_time(info, value), style="bold" if critical else ""))
    style = "bold" if row.cost == _most(info) else ""
    return [*cells, Text(_time(info, row.cost), style=style)]


def _most(info: RanksInfo) -> int:
    return max(row.cost for row in info.rows)


def _unit(info: RanksInfo) -> tuple[str, int]:
    return time_unit([*info.barriers, _most(info)])


def _time(info: RanksInfo, value: int) -> str:
    if info.time_unit != "ps":
        return f"{value:,}"
    size = _unit(info)[1]
    return f"{value / size:.4g}" if size > 1 else str(value)


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
    """Bytes of ids received and embeddings sent per step, embeddings in the tables' own element
    type; None if this version does not offer the plan's options."""
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
    shares = _shares(instance, placement)
    rows = tuple(
        SlowRow(
            rank=rank,
            time=int(time[rank]),
            incoming=None if traffic is None else int(traffic[rank, 0]),
            outgoing=None if traffic is None else int(traffic[rank, 1]),
            tables=_largest(instance, shares[:, rank]),
        )
        for rank in slowest
    )
    found = {"time": time}
    for resource, use in zip(instance.resources, loads.use, strict=True):
        if resource.scope == Scope.RANK:
            found.setdefault(memory_name(resource.name), use)
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
    """One row per rank with its costliest tables, then how even all ranks are."""
    rows = [
        [
            str(row.rank), show_time(row.time), show_bytes(row.incoming), show_bytes(row.outgoing),
            ", ".join(f"{name} {show_time(time)}" for name, time in row.tables),
        ]
        for row in info.rows
    ]  # fmt: skip
    headers = ("rank", "time", "in", "out", "most of it")
    grid = fitting_grid(headers, rows, {"most of it": 40}, ("most of it",), folded=("most of it",))
    measures = ("variation", "distance", "chi", "kl")
    even = [
        [
            each.what, _show(each, each.mean), _show(each, each.most), str(each.rank),
            f"{each.above:.1%}", *(f"{getattr(each.imbalance, m):.3f}" for m in measures),
        ]
        for each in info.evenness
    ]  # fmt: skip
    columns = ("", "mean", "most", "rank", "above", "variation", "distance", "chi²", "KL")
    title = "how even the ranks are; the last four as TorchRec prints them, 0 where all are alike"
    return Group(
        Text("the slowest ranks", style="bold"),
        grid,
        Text(title, style="bold"),
        fitting_grid(columns, even, {}),
    )


def _show(each: Evenness, value: float) -> str:
    return show_time(round(value)) if each.what == "time" else show_bytes(round(value))
