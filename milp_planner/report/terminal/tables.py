"""The per-table table on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.tables import Facets, TableRow, TablesInfo, facets_of
from milp_planner.report.units import (
    shorten,
    show_bytes,
    show_cost,
    show_ranks,
)

#: Tables shown before the rest is summed up in a line.
MOST_TABLES = 40
_WIDTH = {"option": 34, "sharding": 18, "mode": 9, "ratio": 6, "routing": 16}


def draw_tables(info: TablesInfo, everything: bool = False) -> RenderableType:
    """Option, ranks, memory and time of every table (the costliest ones where there are many)."""
    folded = len(info.rows) > MOST_TABLES and not everything
    rows = info.costliest(MOST_TABLES) if folded else info.rows
    facets = [facets_of(row.option) for row in rows]
    known = [f for f in facets if f is not None]
    table = Table(box=None, pad_edge=False)
    table.add_column("table", no_wrap=True, max_width=22)
    parts = _part_names(known) if len(known) == len(rows) else ("option",)
    for name in parts:
        table.add_column(name, no_wrap=True, max_width=_WIDTH[name])
    table.add_column("ranks", no_wrap=True, max_width=10)
    names = list(rows[0].used) if rows else []
    for name in _tiers(names):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for row, facet in zip(rows, facets, strict=True):
        option = [getattr(facet, name) for name in parts] if facet and known else [row.option]
        cells = [shorten(text, _WIDTH[name]) for text, name in zip(option, parts, strict=False)]
        table.add_row(shorten(row.name, 22), *cells, *_cells(info, row, names))
    note = [Text(f"… and {len(info.rows) - len(rows)} cheaper tables (--all shows them)")]
    return Group(Text("per table", style="bold"), table, *(note if folded else []))


def _part_names(known: list[Facets]) -> tuple[str, ...]:
    """The parts any table has: routing is left out where nothing is routed."""
    parts = ("sharding", "mode", "ratio", "routing")
    return tuple(n for n in parts if n in parts[:2] or any(getattr(f, n) for f in known))


def _tiers(names: list[str]) -> list[str]:
    """Memory columns: ``hbm:NAME`` resources, one a collective, count the same HBM once."""
    return list(dict.fromkeys(name.partition(":")[0] for name in names))


def _cells(info: TablesInfo, row: TableRow, names: list[str]) -> list[str]:
    ranks = [rank for block in row.ranks for rank in block]
    tiers = _tiers(names)
    used = [max(row.used[n] for n in names if n.partition(":")[0] == tier) for tier in tiers]
    return [
        shorten(show_ranks(ranks, info.num_ranks), 10),
        *(show_bytes(amount) for amount in used),
        show_cost(row.cost, info.time_unit),
    ]
