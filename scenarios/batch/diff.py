"""What differs between two batches: scenarios matched by inputs, objective, series and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.grid import Cell, Cells, Grid
from milp_planner.drawing.page import Fact, Part, Section, fill
from milp_planner.drawing.units import UNKNOWN, listed, show_seconds
from milp_planner.features.report.plan_diff import change_of
from milp_planner.files import Facts
from scenarios.batch.curves import Row
from scenarios.batch.info import BatchInfo

BRIEF_COLUMNS = 6
"""Columns of the table of scenarios that fit a terminal."""
MOST_SCENARIOS = 40
"""Most scenarios on the terminal; the page has all."""


@dataclass(frozen=True)
class Result:
    """One scenario's result in one batch."""

    standing: str
    objective: int | None
    certified_bound: int | None
    certified_gap: float | None
    seconds: float | None


@dataclass(frozen=True)
class ScenarioChange:
    """A scenario that both batches have; its results may be equal."""

    scenario: str
    """Inputs, objective, series and seed."""
    before: Result
    after: Result

    @property
    def differs(self) -> bool:
        """Whether plan or proof changed; seconds do not count."""
        names = ("standing", "objective", "certified_bound")
        return any(getattr(self.before, n) != getattr(self.after, n) for n in names)

    @property
    def ratio(self) -> float | None:
        """Objective in the second batch over that in the first; None without both."""
        if not self.before.objective or self.after.objective is None:
            return None
        return self.after.objective / self.before.objective


@dataclass(frozen=True)
class BatchDiff(Facts):
    """Two batches side by side."""

    names: tuple[str, str]
    """Folders."""
    suites: tuple[str, str]
    versions: tuple[str, str]
    """Versions of milp-planner that made the results."""
    scenarios: tuple[ScenarioChange, ...]
    """All that both have, in the order of the first."""
    removed: tuple[str, ...]
    added: tuple[str, ...]
    """Scenarios that only the first, or only the second, has."""

    @property
    def changed(self) -> tuple[ScenarioChange, ...]:
        """Those whose plan or proof differs."""
        return tuple(each for each in self.scenarios if each.differs)

    def count(self, sign: int) -> int:
        """Scenarios whose objective fell (-1), is equal (0) or rose (1)."""
        pairs = [(s.before.objective, s.after.objective) for s in self.scenarios]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        return sum((b > a) - (b < a) == sign for a, b in known)

    def found(self, gained: bool) -> int:
        """Scenarios with a plan only in the second (gained), or only in the first, batch."""
        pairs = [(s.before.objective is None, s.after.objective is None) for s in self.scenarios]
        return pairs.count((True, False) if gained else (False, True))

    @property
    def mean_ratio(self) -> float | None:
        """Geometric mean of the ratios of objectives; None without any."""
        ratios = [ratio for each in self.scenarios if (ratio := each.ratio)]
        return geometric_mean(ratios) if ratios else None


def diff_of_batches(batches: tuple[BatchInfo, BatchInfo], names: tuple[str, str]) -> BatchDiff:
    """Match the scenarios of two batches, of the same suite or of others."""
    first, second = ({_key(row): row for row in batch.rows} for batch in batches)
    return BatchDiff(
        names=names,
        suites=(batches[0].name, batches[1].name),
        versions=(", ".join(batches[0].versions), ", ".join(batches[1].versions)),
        scenarios=tuple(
            ScenarioChange(name, _result(row), _result(second[name]))
            for name, row in first.items()
            if name in second
        ),
        removed=tuple(name for name in first if name not in second),
        added=tuple(name for name in second if name not in first),
    )


def _key(row: Row) -> str:
    return f"{row.instance}, {row.series}, seed {row.seed}"


def _result(row: Row) -> Result:
    return Result(row.standing, row.objective, row.certified_bound, row.certified_gap, row.seconds)


def draw_batch_diff(info: BatchDiff) -> RenderableType:
    """The terminal's drawing."""
    sides = [
        Text(f"{sign} {name}: suite {suite}, version {version or UNKNOWN}")
        for sign, name, suite, version in zip(
            "ab", info.names, info.suites, info.versions, strict=True
        )
    ]
    parts: list[RenderableType] = [*sides, *(Text(line) for line in summary(info))]
    changed = info.changed
    if changed:
        parts.append(scenario_grid(_largest_first(changed)).first(MOST_SCENARIOS, BRIEF_COLUMNS))
    if len(changed) > MOST_SCENARIOS:
        hidden = len(changed) - MOST_SCENARIOS
        parts.append(Text(f"… and {hidden:,} more scenarios (the page and --json have all)"))
    return Group(*parts)


def summary(info: BatchDiff) -> list[str]:
    """The whole comparison in sentences."""
    both = len(info.scenarios)
    found = [
        f"{both:,} scenarios in both: objective lower in {info.count(-1):,}, equal in "
        f"{info.count(0):,}, higher in {info.count(1):,}; a plan only in a: {info.found(False):,}, "
        f"only in b: {info.found(True):,}"
    ]
    if info.mean_ratio is not None:
        found.append(f"geometric mean of b over a: {info.mean_ratio:.4f}")
    for what, names in (("only in a", info.removed), ("only in b", info.added)):
        if names:
            found.append(f"{what}: {len(names):,} scenarios: {listed(names, 3)}")
    if info.versions[0] != info.versions[1]:
        found.append("the versions differ: prices and bytes of the same inputs may, too")
    return found


def _largest_first(scenarios: Sequence[ScenarioChange]) -> list[ScenarioChange]:
    return sorted(scenarios, key=lambda each: -abs((each.ratio or 1.0) - 1.0))


def scenario_grid(scenarios: Sequence[ScenarioChange]) -> Grid:
    """Results side by side."""
    rows: list[Cells] = []
    for s in scenarios:
        both = (s.before, s.after)
        rows.append((
            s.scenario,
            *(Cell.cost(each.objective, "ps") for each in both),
            Cell(change_of(s.before.objective, s.after.objective), s.ratio),
            *(each.standing for each in both),
            *(Cell.gap(each.certified_gap) for each in both),
            *(Cell(_seconds(each), each.seconds) for each in both),
        ))  # fmt: skip
    head = ("scenario", "#objective a", "#objective b", "#change", "status a", "status b",
            "#certified gap a", "#certified gap b", "#time a", "#time b")  # fmt: skip
    caption, least = "Scenarios whose plan or proof differs", {
        "scenario": 30, "status b": 12, "status a": 12,
    }  # fmt: skip
    return Grid.of("changes", "changes", caption, head, rows, least, ("scenario",))


def _seconds(result: Result) -> str:
    return UNKNOWN if result.seconds is None else show_seconds(result.seconds)


def render_batch_diff(info: BatchDiff) -> str:
    """The page as text: self-contained, with styles and script inside."""
    changed = info.changed
    parts = (Part(table=scenario_grid(_largest_first(changed))),) if changed else ()
    return fill(
        title="Two batches",
        subtitle=f"a: {info.names[0]} ({info.suites[0]}). b: {info.names[1]} ({info.suites[1]}).",
        strip=[
            Fact("in both", f"{len(info.scenarios):,}"),
            Fact("lower in b", f"{info.count(-1):,}"),
            Fact("equal", f"{info.count(0):,}"),
            Fact("higher in b", f"{info.count(1):,}"),
        ],
        sections=[
            Section("summary", "Summary", points=tuple(summary(info))),
            Section("changes", "Scenarios that differ", parts=parts,
                    points=() if changed else ("All plans and proofs are equal.",)),
        ],
        footer=f"Written by milp-planner. Results of versions {info.versions[0] or UNKNOWN} and "
        f"{info.versions[1] or UNKNOWN}.",
    )  # fmt: skip
