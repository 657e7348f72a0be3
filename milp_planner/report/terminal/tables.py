"""The per-table table on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.report.tables import Facets, TableRow, TablesInfo, facets_of, per_memory
from milp_planner.report.terminal.grid import fitting_grid
from milp_planner.report.units import show_amount, show_cost, show_ranks

#: Tables shown before the rest is summed up in a line.
MOST_TABLES = 40
#: Columns that are shortened where the width is not enough, in this order, and to which width.
_LEAST = {"table": 16, "option": 24, "sharding": 14, "routing": 10, "ranks": 8}


def draw_tables(info: TablesInfo, everything: bool = False) -> RenderableType:
    """Option, ranks, memory and time of every table (the costliest ones where there are many)."""
    folded = len(info.rows) > MOST_TABLES and not everything
    rows = info.costliest(MOST_TABLES) if folded else info.rows
    facets = [facets_of(row.option) for row in rows]
    known = [f for f in facets if f is not None]
    parts = _part_names(known) if len(known) == len(rows) else ("option",)
    cells = [
        [row.name, *_option(row, facet, parts), *_cells(info, row)]
        for row, facet in zip(rows, facets, strict=True)
    ]
    headers = [
        "table",
        *parts,
        "ranks",
        *(per_memory(rows[0].used) if rows else ()),
        "time" if info.time_unit == "ps" else info.time_unit,
    ]
    grid = fitting_grid(headers, cells, _LEAST, left=("table", *parts, "ranks"))
    note = [Text(f"… and {len(info.rows) - len(rows)} cheaper tables (--all shows them)")]
    return Group(Text("per table", style="bold"), grid, *(note if folded else []))


def _option(row: TableRow, facets: Facets | None, parts: tuple[str, ...]) -> list[str]:
    if parts == ("option",) or facets is None:
        return [row.option]
    return [getattr(facets, part) for part in parts]


def _part_names(known: list[Facets]) -> tuple[str, ...]:
    """The parts any table has: routing is left out where nothing is routed."""
    parts = ("sharding", "mode", "ratio", "routing")
    return tuple(n for n in parts if n in parts[:2] or any(getattr(f, n) for f in known))


def _cells(info: TablesInfo, row: TableRow) -> list[str]:
    ranks = [rank for block in row.ranks for rank in block]
    return [
        show_ranks(ranks, info.num_ranks),
        *(show_amount(amount, info.time_unit) for amount in per_memory(row.used).values()),
        show_cost(row.cost, info.time_unit),
    ]
