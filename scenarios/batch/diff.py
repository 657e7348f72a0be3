"""What differs between two batches: scenarios matched by inputs, objective, series and seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean

from milp_planner.drawing.grid import Cell, Cells, Grid
from milp_planner.drawing.page import Fact
from milp_planner.drawing.units import UNKNOWN, show_seconds
from milp_planner.features.report.diff import Block, Change, Diff, change_of, changes
from scenarios.batch.curves import Row
from scenarios.batch.info import BatchInfo

BRIEF_COLUMNS = 6
"""Columns of the table of scenarios that fit a terminal."""
MOST_SCENARIOS = 40
"""Most scenarios on the terminal; the page has all."""


@dataclass(frozen=True, repr=False)
class BatchDiff(Diff):
    """Two batches side by side; the rows are scenarios."""

    counts: dict[str, int]
    """Scenarios whose objective is lower, equal or higher in b, or whose plan is only in a or b."""
    mean_ratio: float | None
    """Geometric mean of the ratios of objectives; None without any."""
    kind = "batches"

    def strip(self) -> list[Fact]:
        """How many scenarios there are, and how their objectives compare."""
        found = {"in both": self.rows.both, **self.counts}
        return [Fact(name, f"{count:,}") for name, count in found.items()]

    def blocks(self) -> Iterator[Block]:
        """A summary, and the scenarios that differ, the largest change first."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        lines = [f"{self.rows.both:,} scenarios in both; plans of b: {counts}", *self.only()]
        if self.mean_ratio is not None:
            lines.append(f"geometric mean of b over a: {self.mean_ratio:.4f}")
        if self.standings[0] != self.standings[1]:
            lines.append("the versions differ: prices and bytes of the same inputs may, too")
        yield Block("summary", "Summary", lines)
        rows = sorted(self.rows.changed, key=lambda c: -abs((_ratio(c) or 1.0) - 1.0))
        text = (
            f"{len(rows):,} differ in plan or proof" if rows else "all plans and proofs are equal"
        )
        grid = _grid(rows) if rows else None
        yield Block("scenarios", "Scenarios that differ", [text], grid, MOST_SCENARIOS,
                    BRIEF_COLUMNS)  # fmt: skip


def diff_of_batches(batches: tuple[BatchInfo, BatchInfo], names: tuple[str, str]) -> BatchDiff:
    """Match the scenarios of two batches, of the same suite or of others."""
    first, second = (
        {f"{row.instance}, {row.series}, seed {row.seed}": row for row in batch.rows}
        for batch in batches
    )
    pairs = [(each, second[key]) for key, each in first.items() if key in second]
    counts = Counter(map(_word, pairs))
    ratios = [_ratio(Change("", *pair)) for pair in pairs]
    known = [ratio for ratio in ratios if ratio]
    return BatchDiff(
        names=names,
        titles=(f"suite {batches[0].name}", f"suite {batches[1].name}"),
        standings=(_versions(batches[0]), _versions(batches[1])),
        rows=changes(first, second, _same),
        counts={word: counts[word] for word in _WORDS},
        mean_ratio=geometric_mean(known) if known else None,
    )


def _same(one: Row, other: Row) -> bool:
    """Whether plan and proof are equal; seconds alone are no difference."""
    names = ("standing", "objective", "certified_bound")
    return all(getattr(one, name) == getattr(other, name) for name in names)


_WORDS = ("lower", "equal", "higher", "found only in a", "found only in b")


def _word(pair: tuple[Row, Row]) -> str:
    """How the second objective compares with the first; empty without plans."""
    a, b = (each.objective for each in pair)
    if a is None or b is None:
        return "" if a is b else _WORDS[3 if b is None else 4]
    return _WORDS[(b > a) - (b < a) + 1]


def _ratio(change: Change) -> float | None:
    """Objective in the second batch over that in the first; None without both."""
    a, b = change.before.objective, change.after.objective
    return b / a if a and b is not None else None


def _versions(batch: BatchInfo) -> str:
    return f"version {', '.join(batch.versions) or UNKNOWN}"


def _grid(rows: list[Change]) -> Grid:
    """Results side by side."""
    cells: list[Cells] = []
    for change in rows:
        both = (change.before, change.after)
        cells.append((
            change.key,
            *(Cell.cost(each.objective, "ps") for each in both),
            Cell(change_of(*(each.objective for each in both)), _ratio(change)),
            *(each.standing for each in both),
            *(Cell.gap(each.certified_gap) for each in both),
            *(Cell(_seconds(each), each.seconds) for each in both),
        ))  # fmt: skip
    head = ("scenario", "#objective a", "#objective b", "#change", "status a", "status b",
            "#certified gap a", "#certified gap b", "#time a", "#time b")  # fmt: skip
    caption = "Scenarios whose plan or proof differs"
    least = {"scenario": 30, "status b": 12, "status a": 12}
    return Grid.of("changes", "changes", caption, head, cells, least, ("scenario",))


def _seconds(result: Row) -> str:
    return UNKNOWN if result.seconds is None else show_seconds(result.seconds)
