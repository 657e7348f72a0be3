"""The per-rank table on a terminal; one row a machine above 64 ranks."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.ranks import MachineRow, RankRow, RanksInfo, Usage
from milp_planner.report.units import show_bytes, show_share, show_time, time_unit

#: Machines shown before the rest is summed up in a line.
MOST_MACHINES = 40


def draw_ranks(info: RanksInfo, everything: bool = False) -> RenderableType:
    """Ranks (folded to machines where there are many), then the machines' own resources."""
    if info.folded and not everything:
        return _folded(info)
    table = _frame(info, "per rank", ["rank", "mach"])
    _usage_columns(table, info.rows[0].usage)
    _phase_columns(table, info)
    for row in info.rows:
        table.add_row(*_rank_cells(info, row))
    table.add_section()
    blanks = [""] * (1 + 2 * len(info.rows[0].usage))
    times = [_time(info, v) for v in info.barriers]
    table.add_row("max", *blanks, *times, _time(info, max(r.cost for r in info.rows)))
    return Group(table, *_machines(info))


def _folded(info: RanksInfo) -> RenderableType:
    shown = sorted(info.machines, key=lambda m: (-m.cost, m.machine))[:MOST_MACHINES]
    shown.sort(key=lambda m: m.machine)
    title = f"per machine ({len(info.rows)} ranks folded: fullest and slowest rank of each)"
    table = _frame(info, title, ["mach", "ranks"])
    _usage_columns(table, info.machines[0].usage)
    _usage_columns(table, info.machines[0].fullest, prefix="rank ")
    table.add_column("sum", justify="right", no_wrap=True)
    for row in shown:
        cells = [c for u in (*row.usage, *row.fullest) for c in _usage_cells(u)]
        table.add_row(str(row.machine), _span(row.ranks), *cells, _time(info, row.cost))
    hidden = len(info.machines) - len(shown)
    note = [Text(f"… and {hidden} less busy machines (--all shows every rank)")] if hidden else []
    barriers = [
        f"{name} {_time(info, v)}" for name, v in zip(info.phases, info.barriers, strict=True)
    ]
    return Group(table, *note, Text("slowest rank of each phase: " + " · ".join(barriers)))


def _machines(info: RanksInfo) -> list[RenderableType]:
    if not info.machines[0].usage:
        return []
    table = _frame(info, "per machine", ["mach", "ranks"])
    _usage_columns(table, info.machines[0].usage)
    for row in info.machines:
        cells = [c for u in row.usage for c in _usage_cells(u)]
        table.add_row(str(row.machine), _span(row.ranks), *cells)
    return [table]


def _frame(info: RanksInfo, title: str, first: list[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in first:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _usage_columns(table: Table, usage: tuple[Usage, ...], prefix: str = "") -> None:
    for use in usage:
        table.add_column(f"{prefix}{use.resource}", justify="right", no_wrap=True)
        table.add_column("of", justify="left", no_wrap=True)


def _phase_columns(table: Table, info: RanksInfo) -> None:
    for phase in info.phases:
        table.add_column(phase.replace("_", "\n", 1), justify="right", no_wrap=True)
    table.add_column("sum", justify="right", no_wrap=True)


def _rank_cells(info: RanksInfo, row: RankRow) -> list[Text | str]:
    cells: list[Text | str] = [str(row.rank), str(row.machine)]
    for use in row.usage:
        cells += _usage_cells(use)
    for value, critical in zip(row.phases, row.critical, strict=True):
        cells.append(Text(_time(info, value), style="bold" if critical else ""))
    return [*cells, _time(info, row.cost)]


def _usage_cells(use: Usage) -> list[Text | str]:
    over = use.used > use.capacity
    share = show_share(use.used, use.capacity)
    capacity = f"{show_bytes(use.capacity)} {share}"
    return [show_bytes(use.used), Text(capacity, style="bold red" if over else "")]


def _time(info: RanksInfo, value: int) -> str:
    if info.time_unit != "ps":
        return f"{value:,}"
    unit = time_unit([*info.barriers, *(row.cost for row in info.rows[:1])])
    return show_time(value, unit)


def _span(ranks: tuple[int, ...]) -> str:
    from milp_planner.report.units import show_ranks

    return show_ranks(ranks, -1)


__all__ = ["MOST_MACHINES", "MachineRow", "draw_ranks"]
