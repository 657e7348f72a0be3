"""All figures of a batch as one value, and how the terminal draws it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.units import show_axis, show_seconds
from scenarios.batch.curves import (
    Profile,
    Record,
    Row,
    contradictions,
    profiles_of,
    rows_of,
)
from scenarios.batch.sweeps import Swept, sweeps_of

STATUSES = ("optimal", "feasible", "infeasible", "unknown", "not_covered", "failed")


@dataclass(frozen=True)
class AssertionInfo:
    """The verdict on an assertion after a run."""

    name: str
    """The assertion's text."""
    holds: bool | None
    """Whether it holds for every scenario; None: for all that were run, but some were not."""
    scenarios: int
    """Number of scenarios that it covers."""
    broken: tuple[str, ...]
    """One sentence per scenario where it does not hold."""
    missing: int = 0
    """Number of covered scenarios that were not run."""


@dataclass(frozen=True)
class SummaryRow:
    """One series under one objective."""

    series: str
    objective_kind: str
    counts: dict[str, int]
    """Number of scenarios by status."""
    equal: int
    """Number of plans as good as the best known of their instance."""
    worst: float | None
    """Largest (objective − best known)/best known."""
    certified_gap: float | None
    """Median gap of its plans to the best bound certified by any formulation."""
    gap: float | None
    """Median gap of its plans to the best bound proved by any formulation."""
    seconds: float
    """Total solve time."""


@dataclass(frozen=True)
class BatchInfo:
    """All figures of one batch."""

    name: str
    description: str
    """The suite's description."""
    scenarios: int
    """Number of scenarios in the suite; ``len(rows)`` of them have a result."""
    versions: tuple[str, ...]
    """Versions of milp-planner that made the results."""
    finished: str
    """Time of the last result; empty without one."""
    summary: tuple[SummaryRow, ...]
    assertions: tuple[AssertionInfo, ...]
    contradictions: tuple[str, ...]
    """Sentences on results that contradict each other."""
    profiles: tuple[Profile, ...]
    sweeps: tuple[Swept, ...]
    rows: tuple[Row, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of scenarios by status, without statuses that none has."""
        every = {s: sum(row.status == s for row in self.rows) for s in STATUSES}
        return {status: count for status, count in every.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        rows = [row.told() for row in self.rows]
        return {**asdict(replace(self, rows=())), "rows": rows, "counts": self.counts}


def batch_of(
    name: str,
    description: str,
    scenarios: int,
    records: Sequence[Record],
    judgements: Iterable[AssertionInfo] = (),
) -> BatchInfo:
    """Collect the figures of a batch from its records and the judgements of its assertions."""
    every = rows_of(records)
    return BatchInfo(
        name=name,
        description=description,
        scenarios=scenarios,
        versions=tuple(sorted({r["versions"]["milp-planner"] for r in records})),
        finished=max((r.get("finished", "") for r in records), default=""),
        summary=tuple(_summary(every)),
        assertions=tuple(judgements),
        contradictions=contradictions(every),
        profiles=profiles_of(every),
        sweeps=sweeps_of(every),
        rows=every,
    )


def _summary(every: Sequence[Row]) -> Iterable[SummaryRow]:
    for series, kind in dict.fromkeys((row.series, row.objective_kind) for row in every):
        mine = [row for row in every if (row.series, row.objective_kind) == (series, kind)]
        above = [row.above_best for row in mine if row.above_best is not None]
        gaps = [row.best_gap for row in mine if row.best_gap is not None]
        certified = [row.certified_gap for row in mine if row.certified_gap is not None]
        yield SummaryRow(
            series=series,
            objective_kind=kind,
            counts={s: sum(row.status == s for row in mine) for s in STATUSES},
            equal=sum(a == 0 for a in above),
            worst=max(above, default=None),
            certified_gap=median(certified) if certified else None,
            gap=median(gaps) if gaps else None,
            seconds=sum(row.seconds or 0.0 for row in mine),
        )


MOST_BROKEN = 5
"""Most broken scenarios to show per assertion; --json has all."""


def draw_batch(info: BatchInfo) -> RenderableType:
    """One row per formulation and objective, then failures, contradictions and assertions."""
    failures = (
        Text(f"failed: {row.instance}, {row.series}: {row.note}", style="red")
        for row in info.rows
        if row.status == "failed"
    )
    wrong = (Text(f"contradiction: {each}", style="bold red") for each in info.contradictions)
    return headed(info.name, summary_grid(info), *failures, *wrong, *_assertions(info))


def summary_grid(info: BatchInfo) -> Grid:
    """One row per formulation and objective."""
    statuses = list(info.counts)
    head = ("formulation", "objective", *(f"#{s.replace('_', ' ')}" for s in statuses),
            "#certified gap", "#gap", "#best", "#worst", "#solving")  # fmt: skip
    rows: list[Cells] = [
        (
            row.series,
            row.objective_kind,
            *(Cell(str(row.counts[s] or ""), row.counts[s]) for s in statuses),
            *map(Cell.gap, (row.certified_gap, row.gap)),
            Cell.count(row.equal),
            Cell.gap(row.worst),
            Cell(show_seconds(row.seconds), row.seconds),
        )
        for row in info.summary
    ]
    caption, least = "One row per formulation and objective", {"formulation": 20}
    return Grid.of("summary-rows", "formulations", caption, head, rows, least)


def draw_rows(found: Sequence[dict[str, Any]]) -> RenderableType:
    """The rows of a query, with readable memory sizes, and fractions to six digits."""
    table = Table(box=None, pad_edge=False)
    for name in found[0] if found else ():
        table.add_column(name)
    for row in found:
        table.add_row(*(_shown(name, value) for name, value in row.items()))
    return table


def _shown(name: str, value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else show_axis(name, value)


_VERDICT = {
    True: ("holds", "green"),
    False: ("does not hold", "bold red"),
    None: ("not decided, scenarios are missing", "yellow"),
}


def _assertions(info: BatchInfo) -> list[RenderableType]:
    """One line per assertion, followed by the scenarios where it does not hold."""
    parts: list[RenderableType] = []
    for judged in info.assertions:
        word, style = _VERDICT[judged.holds]
        many = f" ({judged.scenarios} scenario{'s' if judged.scenarios > 1 else ''})"
        parts.append(Text.assemble((word, style), f": {judged.name}{many}"))
        parts += [Text(f"  {sentence}") for sentence in judged.broken[:MOST_BROKEN]]
        if len(judged.broken) > MOST_BROKEN:
            parts.append(Text(f"  and {len(judged.broken) - MOST_BROKEN} more", style="dim"))
    return parts
