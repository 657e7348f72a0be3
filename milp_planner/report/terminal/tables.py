"""The per-table table on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.tables import TableRow, TablesInfo
from milp_planner.report.units import (
    shorten,
    show_bytes,
    show_cost,
    show_ranks,
)

#: Tables shown before the rest is summed up in a line.
MOST_TABLES = 40


def draw_tables(info: TablesInfo, everything: bool = False) -> RenderableType:
    """Option, ranks, memory and time of every table (the costliest ones where there are many)."""
    folded = len(info.rows) > MOST_TABLES and not everything
    rows = info.costliest(MOST_TABLES) if folded else info.rows
    table = Table(
        title="per table", title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    table.add_column("table", no_wrap=True, max_width=24)
    table.add_column("option", no_wrap=True, max_width=36)
    table.add_column("ranks", no_wrap=True, max_width=12)
    names = list(rows[0].used) if rows else []
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(info, row, names))
    if not folded:
        return table
    hidden = len(info.rows) - len(rows)
    return Group(table, Text(f"… and {hidden} cheaper tables (--all shows them)"))


def _cells(info: TablesInfo, row: TableRow, names: list[str]) -> list[str]:
    ranks = [rank for block in row.ranks for rank in block]
    return [
        shorten(row.name, 24),
        shorten(row.option, 36),
        shorten(show_ranks(ranks, info.num_ranks), 12),
        *(show_bytes(row.used[name]) for name in names),
        show_cost(row.cost, info.time_unit),
    ]
