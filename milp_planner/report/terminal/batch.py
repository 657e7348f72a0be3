"""A batch on a terminal: what came out for each formulation, assertions, rows of a query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.units import show_seconds

STATUSES = ("optimal", "feasible", "infeasible", "unknown", "not_covered", "failed")
SHOWN = 5
"""Broken scenarios of an assertion that are shown; --json has all."""


class Judged(Protocol):
    """An assertion after a run."""

    @property
    def name(self) -> str:
        """What it says."""
        ...

    @property
    def holds(self) -> bool:
        """Whether it holds."""
        ...

    @property
    def scenarios(self) -> int:
        """How many scenarios it speaks of."""
        ...

    @property
    def broken(self) -> tuple[str, ...]:
        """One sentence a scenario where it does not hold."""
        ...


def draw_batch(name: str, results: Sequence[dict[str, Any]]) -> RenderableType:
    """One row a formulation and objective: how many ended how, and the time they took."""
    table = Table(title=name, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("formulation", "objective"):
        table.add_column(column, no_wrap=True)
    for column in (*STATUSES, "solving"):
        table.add_column(column.replace("_", " "), justify="right", no_wrap=True)
    groups = {(r["formulation"], r["objective_kind"]): None for r in results}
    for formulation, objective in groups:
        rows = [r for r in results if (r["formulation"], r["objective_kind"]) == (
            formulation, objective)]  # fmt: skip
        counts = [sum(row["status"] == status for row in rows) for status in STATUSES]
        seconds = sum(row.get("seconds") or 0.0 for row in rows)
        cells = (str(count) if count else "" for count in counts)
        table.add_row(formulation, objective, *cells, show_seconds(seconds))
    failures = (row for row in results if row["status"] == "failed")
    return Group(table, *(_failure(row) for row in failures))


def draw_assertions(judgements: Iterable[Judged]) -> RenderableType:
    """One line an assertion, and below it where it does not hold."""
    parts: list[RenderableType] = []
    for judged in judgements:
        word, style = ("holds", "green") if judged.holds else ("does not hold", "bold red")
        many = f" ({judged.scenarios} scenario{'s' if judged.scenarios > 1 else ''})"
        parts.append(Text.assemble((word, style), f": {judged.name}{many}"))
        parts += [Text(f"  {sentence}") for sentence in judged.broken[:SHOWN]]
        if len(judged.broken) > SHOWN:
            parts.append(Text(f"  and {len(judged.broken) - SHOWN} more", style="dim"))
    return Group(*parts)


def draw_rows(rows: Sequence[dict[str, Any]]) -> RenderableType:
    """The rows of a query."""
    table = Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    return table


def _failure(row: dict[str, Any]) -> Text:
    axes = "".join(f", {name} {value}" for name, value in row["axes"].items())
    what = f"{row['model']} on {row['cluster']}{axes}, {row['formulation']}"
    error = row["error"]
    return Text(f"failed: {what}: {error['type']}: {error['message']}", style="red")
