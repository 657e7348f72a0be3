"""The load of every rank and machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Group, RenderableType

from formulations import Instance, Placement
from formulations.result.check import Loads, compute_loads
from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.units import show_ranks, show_share, time_unit
from milp_planner.features.plan.use import Use, Uses, by_memory, uses_of, whole_uses
from milp_planner.files import Facts
from milp_planner.plans.ledger import LedgerInfo

#: Above this many ranks, rows stand for machines.
FOLD_ABOVE = 64


@dataclass(frozen=True)
class RankRow:
    """The load of one rank."""

    rank: int
    machine: int
    usage: tuple[Use, ...]
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
    usage: tuple[Use, ...]
    """Usage of the resources that machines have."""
    fullest: tuple[Use, ...]
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
    hidden: tuple[int, ...] = ()
    """Time of each phase that other work hides, under ``pipelined_step``; empty: none."""

    @property
    def folded(self) -> bool:
        """Whether drawings show one row per machine instead of one per rank."""
        return len(self.rows) > FOLD_ABOVE

    def shown(self, phase: int, time: int) -> int:
        """The part of a rank's time in a phase that nothing hides."""
        return max(0, time - self.hidden[phase]) if self.hidden else time

    @property
    def exposed(self) -> tuple[int, ...]:
        """Largest time over all ranks in each phase that nothing hides: their sum is
        ``step_time``, or ``pipelined_step``."""
        return tuple(self.shown(phase, time) for phase, time in enumerate(self.barriers))

    def busiest(self, count: int) -> tuple[RankRow, ...]:
        """The ``count`` costliest ranks, and one that sets each barrier, in rank order."""
        chosen = {row.rank for row in sorted(self.rows, key=lambda r: (-r.cost, r.rank))[:count]}
        for phase, barrier in enumerate(self.barriers):
            slowest = [row.rank for row in self.rows if row.critical[phase]]
            if barrier and chosen.isdisjoint(slowest):
                chosen.add(slowest[0])
        return tuple(row for row in self.rows if row.rank in chosen)


def ranks_of(
    instance: Instance, placement: Placement, ledger: LedgerInfo | None = None
) -> RanksInfo:
    """The loads of a well-formed placement, rank by rank and machine by machine.

    With a ledger, usage is of whole memories with everything in them; else of the instance's
    resources.
    """
    loads = compute_loads(instance, placement)
    uses = uses_of(instance, loads) if ledger is None else whole_uses(ledger)
    slowest = loads.cost.max(axis=0)
    return RanksInfo(
        phases=instance.phases,
        rows=tuple(_rank_row(instance, loads, uses, r, slowest) for r in range(instance.num_ranks)),
        machines=tuple(
            _machine_row(instance, loads, uses, m) for m in range(len(instance.machines))
        ),
        barriers=tuple(int(v) for v in slowest),
        time_unit=instance.time_unit,
        hidden=instance.hidden,
    )


def _rank_row(
    instance: Instance, loads: Loads, uses: Uses, rank: int, slowest: np.ndarray
) -> RankRow:
    cost = loads.cost[rank]
    return RankRow(
        rank=rank,
        machine=int(instance.machine_of[rank]),
        usage=tuple(places[rank] for places in _of(uses, "rank")),
        phases=tuple(int(v) for v in cost),
        cost=int(cost.sum()),
        critical=tuple(bool(v) for v in (cost == slowest) & (cost > 0)),
    )


def _machine_row(instance: Instance, loads: Loads, uses: Uses, machine: int) -> MachineRow:
    ranks = list(instance.machines[machine])
    cost = loads.cost[ranks]
    fullest = (
        max((places[rank] for rank in ranks), key=lambda use: use.share)
        for places in _of(uses, "rank")
    )
    return MachineRow(
        machine=machine,
        ranks=tuple(ranks),
        usage=tuple(places[machine] for places in _of(uses, "machine")),
        fullest=tuple(fullest),
        phases=tuple(int(v) for v in cost.max(axis=0)),
        cost=int(cost.sum(axis=1).max()),
    )


def _of(uses: Uses, scope: str) -> Uses:
    return tuple(places for places in uses if places[0].scope == scope)


#: Most machines to show; one line counts the rest.
MOST_MACHINES = 40


def draw_ranks(info: RanksInfo, everything: bool = False) -> RenderableType:
    """The ranks (folded into machines if there are many), then the machines' own resources."""
    if not any(row.cost or row.usage for row in info.rows):
        return Group(*_machines(info))  # nothing is on ranks
    if info.folded and not everything:
        return _folded(info)
    grid = rank_grid(info)
    slowest = [_time(info, v) for v in (*info.barriers, _most(info))]
    empty = [""] * (len(grid.columns) - len(slowest) - 1)
    last = tuple(Cell(text, strong=True) for text in ("max", *empty, *slowest))
    title = f"per rank{_in_unit(info)} (bold: the slowest of a phase)"
    rows = [*grid.rows, last]
    if info.hidden:
        hides = [_time(info, v) for v in info.hidden]
        rows.append(tuple(map(Cell, ("hides", *empty, *hides, ""))))
    return headed(title, replace(grid, rows=tuple(rows)), *_machines(info))


def rank_grid(info: RanksInfo) -> Grid:
    """One row per rank: its memory, and its time in every phase."""
    unit = f", {_unit(info)[0]}" if info.time_unit == "ps" else ""
    phases = (f"#{_broken(phase)}|{phase}{unit}" for phase in (*info.phases, "sum"))
    head = ("#rank", "#mach|machine", *_usage_heads(by_memory(info.rows[0].usage)), *phases)
    rows = (_rank_cells(info, row) for row in info.rows)
    return Grid.of("ranks", "ranks", "Every rank: memory and time", head, rows)


def rank_page(info: RanksInfo) -> Grid:
    """The same without idle phases, and without machines if there is one."""
    idle = [
        _broken(phase) for phase, most in zip(info.phases, info.barriers, strict=True) if not most
    ]
    return rank_grid(info).without(*idle, *(["mach"] if len(info.machines) == 1 else []))


def _broken(phase: str) -> str:
    return phase.replace("_", "\n", 1)


def _folded(info: RanksInfo) -> RenderableType:
    """One row per machine with its fullest and slowest rank; the least busy are only counted."""
    shown = sorted(info.machines, key=lambda m: (-m.cost, m.machine))[:MOST_MACHINES]
    first = info.machines[0]
    heads = ["#mach", "#ranks", *_usage_heads(by_memory(first.usage))]
    heads += [*_usage_heads(by_memory(first.fullest), "fullest "), "#slowest sum"]
    rows = [
        (*_machine_cells(info, row), *_usage_cells(info, row.fullest), _time(info, row.cost))
        for row in sorted(shown, key=lambda m: m.machine)
    ]
    hidden = len(info.machines) - len(shown)
    note = [f"… and {hidden} less busy machines (--all shows every rank)"] if hidden else []
    pairs = zip(info.phases, info.barriers, strict=True)
    slowest = " · ".join(f"{name} {_time(info, value)}" for name, value in pairs)
    title = f"per machine{_in_unit(info)} ({len(info.rows)} ranks folded; --all shows them)"
    note.append(f"slowest rank of each phase: {slowest}")
    if info.hidden:
        pairs = zip(info.phases, info.hidden, strict=True)
        times = " · ".join(f"{name} {_time(info, value)}" for name, value in pairs if value)
        note.append(f"hidden of each phase: {times or 'nothing'}")
    return headed(title, Grid.plain(heads, rows), *note)


def _machines(info: RanksInfo) -> list[RenderableType]:
    if not info.machines[0].usage:
        return []
    heads = ("#mach", "#ranks", *_usage_heads(by_memory(info.machines[0].usage)))
    rows = (_machine_cells(info, row) for row in info.machines)
    return [headed("per machine", Grid.plain(heads, rows))]


def _usage_heads(memories: Iterable[str], prefix: str = "") -> list[str]:
    """Three headings per memory."""
    return [
        f"#{head}"
        for name in memories
        for head in (
            f"{prefix}{name}|{name.upper()}",
            f"of|of {name.upper()}",
            f"%|{name.upper()} %",
        )
    ]


def _usage_cells(info: RanksInfo, usage: Iterable[Use]) -> Iterator[Cell]:
    for use in by_memory(usage).values():
        share, unit = show_share(use.used, use.capacity), info.time_unit
        yield replace(Cell.amount(use.used, unit), over=use.over)
        yield replace(Cell.amount(use.capacity, unit), over=use.over)
        yield Cell(share.rstrip("%"), use.used / max(1, use.capacity), over=use.over)


def _machine_cells(info: RanksInfo, row: MachineRow) -> tuple[str | Cell, ...]:
    ranks = show_ranks(row.ranks, -1)
    return (str(row.machine), ranks, *_usage_cells(info, row.usage))


def _rank_cells(info: RanksInfo, row: RankRow) -> tuple[Cell, ...]:
    critical = (*row.critical, row.cost == _most(info))
    times = zip((*row.phases, row.cost), critical, strict=True)
    return (
        Cell.count(row.rank),
        Cell.count(row.machine),
        *_usage_cells(info, row.usage),
        *(Cell(_time(info, value), value, strong=strong) for value, strong in times),
    )


def _most(info: RanksInfo) -> int:
    return max(row.cost for row in info.rows)


def _in_unit(info: RanksInfo) -> str:
    return f", times in {_unit(info)[0]}" if info.time_unit == "ps" else ""


def _unit(info: RanksInfo) -> tuple[str, int]:
    return time_unit([*info.barriers, _most(info)])


def _time(info: RanksInfo, value: int) -> str:
    if info.time_unit != "ps":
        return f"{value:,}"
    size = _unit(info)[1]
    return f"{value / size:.4g}" if size > 1 else str(value)
