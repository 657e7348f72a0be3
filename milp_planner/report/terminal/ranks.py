"""The per-rank table on a terminal; one row a machine above 64 ranks."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.ranks import RankRow, RanksInfo, Usage, by_memory
from milp_planner.report.units import show_amount, show_ranks, show_share, time_unit

#: Machines shown before the rest is counted in a line.
MOST_MACHINES = 40


def draw_ranks(info: RanksInfo, everything: bool = False) -> RenderableType:
    """Ranks (folded to machines where there are many), then the machines' own resources."""
    if not any(row.cost or row.usage for row in info.rows):
        return Group(*_machines(info))  # nothing sits on ranks at all
    if info.folded and not everything:
        return _folded(info)
    table = _table("rank", "mach")
    _usage_columns(table, info.rows[0].usage)
    for phase in (*info.phases, "sum"):
        table.add_column(phase.replace("_", "\n", 1), justify="right", no_wrap=True)
    for row in info.rows:
        table.add_row(*_rank_cells(info, row))
    slowest = [_time(info, v) for v in info.barriers]
    blanks = [""] * (1 + 3 * len(by_memory(info.rows[0].usage)))
    table.add_row("max", *blanks, *slowest, _time(info, _most(info)), style="bold")
    unit = f", times in {_unit(info)[0]}" if info.time_unit == "ps" else ""
    title = Text(f"per rank{unit} (bold: the slowest of a phase)", style="bold")
    return Group(title, table, *_machines(info))


def _folded(info: RanksInfo) -> RenderableType:
    """A row a machine with its fullest and slowest rank; the least busy machines are counted."""
    shown = sorted(info.machines, key=lambda m: (-m.cost, m.machine))[:MOST_MACHINES]
    table = _table("mach", "ranks")
    _usage_columns(table, info.machines[0].usage)
    _usage_columns(table, info.machines[0].fullest, "fullest ")
    table.add_column("slowest sum", justify="right", no_wrap=True)
    for row in sorted(shown, key=lambda m: m.machine):
        cells = [*_usage_cells(info, row.usage), *_usage_cells(info, row.fullest)]
        table.add_row(str(row.machine), show_ranks(row.ranks, -1), *cells, _time(info, row.cost))
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
    table = _table("mach", "ranks")
    _usage_columns(table, info.machines[0].usage)
    for row in info.machines:
        cells = _usage_cells(info, row.usage)
        table.add_row(str(row.machine), show_ranks(row.ranks, -1), *cells)
    return [Text("per machine", style="bold"), table]


def _table(*first: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in first:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _usage_columns(table: Table, usage: Iterable[Usage], prefix: str = "") -> None:
    for name in by_memory(usage):
        table.add_column(f"{prefix}{name}", justify="right", no_wrap=True)
        table.add_column("of", justify="right", no_wrap=True)
        table.add_column("%", justify="right", no_wrap=True)


def _usage_cells(info: RanksInfo, usage: Iterable[Usage]) -> list[Text]:
    cells = []
    for use in by_memory(usage).values():
        style = "bold red" if use.used > use.capacity else ""
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
