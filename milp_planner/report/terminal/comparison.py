"""A comparison on a terminal: one section an objective, one row a formulation."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.comparison import ComparisonInfo, ComparisonRow
from milp_planner.report.units import UNKNOWN, show_cost, show_gap, show_seconds
from milp_planner.report.verdict import MEANING

_COLUMNS = ("total", "busiest_rank", "step_time")
_STYLE = {"optimal": "green", "breaks": "bold red", "infeasible": "red", "unknown": "red"}


def draw_comparison(info: ComparisonInfo) -> RenderableType:
    """Every section, then the notes of its rows."""
    parts: list[RenderableType] = []
    for asked in info.bounds:
        rows = [row for row in info.rows if row.asked == asked]
        title = Text(f"minimising {asked}: {MEANING[asked]}", style="bold")
        table = _section(info, asked, rows)
        parts += [title, table, *_notes(rows), Text(info.origin(asked)), Text("")]
    return Group(*parts[:-1])


def _section(info: ComparisonInfo, asked: str, rows: list[ComparisonRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("formulation", no_wrap=True, max_width=26)
    table.add_column("status", no_wrap=True)
    table.add_column("fits", no_wrap=True)
    for name in _COLUMNS:
        style = "bold" if name == asked else ""
        table.add_column(name, justify="right", no_wrap=True, header_style=style, style=style)
    table.add_column("gap", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(info, row))
    return table


def _cells(info: ComparisonInfo, row: ComparisonRow) -> list[Text | str]:
    fits = {True: "yes", False: "no", None: UNKNOWN}[row.feasible]
    return [
        row.label,
        Text(row.status, style=_STYLE.get(row.status, "")),
        Text(fits, style="bold red" if row.feasible is False else ""),
        *(show_cost(row.objectives.get(name), info.time_unit) for name in _COLUMNS),
        show_gap(row.gap),
        UNKNOWN if row.seconds is None else show_seconds(row.seconds),
    ]


def _notes(rows: list[ComparisonRow]) -> list[RenderableType]:
    return [Text(f"{row.label}: {row.note}", style="dim") for row in rows if row.note]
