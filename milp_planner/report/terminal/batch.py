"""A batch on a terminal: summary, assertions, the curves as tables, rows of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.report.batch.curves import Bins, Cactus, Profile
from milp_planner.report.batch.info import BatchInfo
from milp_planner.report.units import UNKNOWN, show_gap, show_percent, show_seconds

SHOWN = 5
"""Broken scenarios of an assertion that are shown; --json has all."""
_ABOVE = (0.0, 0.01, 0.05, 0.2)
_TIMES = (1.0, 2.0, 5.0, 10.0)


def draw_batch(info: BatchInfo) -> RenderableType:
    """One row a formulation and objective; below it what failed, contradictions, assertions."""
    table = _table(info.name, "formulation", "objective")
    statuses = list(info.counts)
    for column in (*statuses, "best", "median gap", "solving"):
        table.add_column(column.replace("_", " "), justify="right", no_wrap=True)
    for row in info.summary:
        counts = (str(row.counts[s]) if row.counts[s] else "" for s in statuses)
        table.add_row(row.series, row.objective_kind, *counts, str(row.equal), show_gap(row.gap),
                      show_seconds(row.seconds))  # fmt: skip
    failures = (
        Text(f"failed: {row.instance}, {row.series}: {row.note}", style="red")
        for row in info.rows
        if row.status == "failed"
    )
    wrong = (Text(f"contradiction: {each}", style="bold red") for each in info.contradictions)
    return Group(table, *failures, *wrong, *_assertions(info))


def draw_figures(info: BatchInfo) -> RenderableType:
    """The summary, then every figure of the page as a table."""
    parts = [draw_batch(info)]
    for figure in (
        *(_profile(each) for each in info.profiles),
        *((_cactus(info.cactus),) if info.cactus.curves else ()),
        *(_bins(each) for each in info.bins),
    ):
        parts += [Text(""), figure]
    return Group(*parts)


def draw_rows(rows: Sequence[dict[str, Any]]) -> RenderableType:
    """The rows of a query."""
    table = Table(box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        table.add_column(name)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    return table


def _assertions(info: BatchInfo) -> list[RenderableType]:
    """One line an assertion, and below it where it does not hold."""
    parts: list[RenderableType] = []
    for judged in info.assertions:
        word, style = ("holds", "green") if judged.holds else ("does not hold", "bold red")
        many = f" ({judged.scenarios} scenario{'s' if judged.scenarios > 1 else ''})"
        parts.append(Text.assemble((word, style), f": {judged.name}{many}"))
        parts += [Text(f"  {sentence}") for sentence in judged.broken[:SHOWN]]
        if len(judged.broken) > SHOWN:
            parts.append(Text(f"  and {len(judged.broken) - SHOWN} more", style="dim"))
    return parts


def _profile(profile: Profile) -> Table:
    by_time = profile.measure == "seconds"
    what = "time until the proof" if by_time else f"minimising {profile.objective_kind}"
    title = f"performance profile, {what}: share of {profile.problems} problems"
    table = _table(title, "formulation")
    places = _TIMES if by_time else tuple(1 + a for a in _ABOVE)
    for place in places:
        name = f"within {place:g}×" if by_time else f"within {place - 1:.0%}"
        table.add_column("best" if place == 1 else name, justify="right")
    for curve in profile.curves:
        table.add_row(curve.series, *(show_percent(curve.at(place)) for place in places))
    return table


def _cactus(cactus: Cactus) -> Table:
    table = _table("proved within", "formulation")
    times = (0.1, 1.0, 10.0, 100.0)
    for seconds in times:
        table.add_column(f"{seconds:g} s", justify="right")
    table.add_column("at last", justify="right")
    table.add_column("of", justify="right")
    for curve in cactus.curves:
        counts = (f"{curve.at(place):g}" for place in (*times, float("inf")))
        table.add_row(curve.series, *counts, str(cactus.scenarios[curve.series]))
    return table


def _bins(bins: Bins) -> Table:
    table = _table(f"{bins.option} against gap, minimising {bins.objective_kind}")
    for name in ("bins", "scenarios", "with a plan", "gap 0", "median gap", "worst", "time"):
        table.add_column(name, justify="right")
    for column in bins.columns:
        table.add_row(
            f"{column.bins:,}", str(column.scenarios), str(column.found), str(column.exact),
            show_gap(column.median), show_gap(column.worst),
            UNKNOWN if column.seconds is None else show_seconds(column.seconds),
        )  # fmt: skip
    return table


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    return table
