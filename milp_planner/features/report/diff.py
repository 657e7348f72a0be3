"""What differs between two plans: inputs, objectives, phases, memories, tables.

A diff says what it shows once, as blocks; terminal and page draw these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from formulations.result.check import moved_bytes
from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.page import Fact, Part, Section, Shown, fill
from milp_planner.drawing.units import UNKNOWN, listed, show_bytes, show_cost, show_ranks
from milp_planner.features.plan.held import held_info
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.features.plan.tables import TableRow, tables_of
from milp_planner.features.plan.verdict import VerdictInfo, verdict_of
from milp_planner.files import Facts
from milp_planner.plans.placement import Plan

MOST_INPUTS = 20
"""Most differences of the inputs that are drawn."""
MOST_TABLES = 40
"""Most tables that a terminal shows; the page has all."""


@dataclass(frozen=True)
class Change:
    """Something that both have, differently, or one of them alone."""

    key: str
    before: Any
    after: Any
    """Values, or facts; None where one lacks it."""


@dataclass(frozen=True)
class Changes:
    """What differs between two collections with keys."""

    changed: tuple[Change, ...]
    """What both have, differently, in the order of the second."""
    alike: int
    """How many both have and are equal."""
    removed: tuple[str, ...]
    added: tuple[str, ...]
    """Keys that only the first, or only the second, has."""


def change_of(before: float | None, after: float | None) -> str:
    """``+3.21%``, ``same``, or nothing where a value is missing or the first is 0."""
    if before is None or after is None:
        return ""
    if before == after:
        return "same"
    return f"{(after - before) / before:+.2%}" if before else ""


@dataclass(frozen=True)
class Block:
    """One part of what a diff shows."""

    id: str
    title: str
    lines: Sequence[str] = ()
    """Sentences; a terminal shows the first as the title."""
    grid: Grid | None = None
    rows: int | None = None
    """The most rows of the grid that a terminal shows."""

    def drawing(self) -> RenderableType:
        """As a terminal shows it."""
        parts: list[RenderableType] = [*self.lines[1:]]
        if self.grid is not None:
            parts.append(self.grid.first(self.rows))
            hidden = len(self.grid.rows) - (self.rows or len(self.grid.rows))
            more = f"… and {hidden:,} more {self.id} (the page and --json have all)"
            parts += [more] if hidden > 0 else []
        return headed(self.lines[0] if self.lines else self.title, *parts)

    def section(self) -> Section:
        """As a page shows it."""
        points = tuple(f"{line[:1].upper()}{line[1:]}." for line in self.lines)
        parts = () if self.grid is None else (Part(table=self.grid),)
        return Section(self.id, self.title, points=points, parts=parts)


@dataclass(frozen=True, repr=False)
class PlanDiff(Facts, Shown):
    """Two plans side by side, a and b."""

    names: tuple[str, str]
    """Their files."""
    titles: tuple[str, str]
    """What each is."""
    standings: tuple[str, str]
    """What is proved of each."""
    rows: Changes
    """Their tables, which differ in option or ranks."""
    inputs: tuple[Change, ...]
    """Fields of model, cluster or profile that differ, such as ``model.tables[users].rows``."""
    figures: tuple[Change, ...]
    """Objectives, bounds, phases (picoseconds) and fullest places (bytes) of both."""
    moved: Mapping[str, int]
    """Bytes of the tables that differ, as the second plan has them, all of which move."""
    num_ranks: tuple[int, int]

    def blocks(self) -> Iterator[Block]:
        """Figures, inputs, tables."""
        yield Block("figures", "Figures, priced by each plan's own profile", grid=self._figures())
        count, equal = len(self.inputs), ["model, cluster and profile are equal"]
        lines = [f"inputs: {count:,} fields differ"]
        lines += [f"the first {MOST_INPUTS}; --json has all"] if count > MOST_INPUTS else []
        grid = self._inputs() if count else None
        yield Block("inputs", "Inputs", lines if count else equal, grid)
        differ, size = len(self.rows.changed), show_bytes(sum(self.moved.values()))
        only = (("only in a", self.rows.removed), ("only in b", self.rows.added))
        text = "; ".join(
            [f"tables: {differ:,} differ ({size}), {self.rows.alike:,} alike"]
            + [f"{what}: {listed(keys, 6)}" for what, keys in only if keys]
        )
        yield Block("tables", "Tables", [text], self._tables() if differ else None, MOST_TABLES)

    def drawing(self) -> RenderableType:
        """The terminal's drawing."""
        sides = zip("ab", self.names, self.titles, self.standings, strict=True)
        lines = (Text(f"{side} {name}: {title}; {word}") for side, name, title, word in sides)
        return Group(*lines, *(block.drawing() for block in self.blocks()))

    def page(self) -> str:
        """The page as text: self-contained, with styles and script inside."""
        sides = zip("ab", self.names, self.titles, strict=True)
        strip = [Fact(side, word) for side, word in zip("ab", self.standings, strict=True)]
        strip += [
            Fact(c.key, _figure(c.key, c.after), change_of(c.before, c.after))
            for c in self.figures[:3]
        ]
        return fill(
            title="Two plans",
            subtitle=" ".join(f"{side}: {name}, {title}." for side, name, title in sides),
            strip=strip,
            sections=[block.section() for block in self.blocks()],
            footer=f"Written by milp-planner. a: {self.standings[0]}. b: {self.standings[1]}.",
        )

    def _figures(self) -> Grid:
        rows: list[Cells] = [
            [c.key, *(Cell(_figure(c.key, v), v) for v in (c.before, c.after)),
             change_of(c.before, c.after)] for c in self.figures
        ]  # fmt: skip
        head = ("figure", "#a", "#b", "#change")
        return Grid.of("figures", "figures", "Figures of both plans", head, rows)

    def _inputs(self) -> Grid:
        rows = [
            [c.key, *(UNKNOWN if value is None else str(value) for value in (c.before, c.after))]
            for c in self.inputs[:MOST_INPUTS]
        ]
        head, least = ("field", "a", "b"), {"a": 12, "b": 12}
        return Grid.of("inputs", "inputs", "Fields that differ", head, rows, least)

    def _tables(self) -> Grid:
        """The tables that differ, those with the most bytes first."""
        rows: list[Cells] = []
        for c in sorted(self.rows.changed, key=lambda c: -self.moved[c.key]):
            both = zip((c.before, c.after), self.num_ranks, strict=True)
            places = [(t.option, show_ranks(_ranks(t), ranks)) for t, ranks in both]
            times = (Cell.cost(t.cost, "ps") for t in (c.before, c.after))
            rows.append((c.key, *places[0], *places[1], *times, Cell.amount(self.moved[c.key])))
        head = ("table", "a", "ranks a", "b", "ranks b", "#time a", "#time b", "#bytes")
        caption, least = (
            "Tables with another option or other ranks",
            {"table": 10, "a": 14, "b": 14},
        )
        return Grid.of("tables", "tables", caption, head, rows, least)


def diff_of_plans(plans: tuple[Plan, Plan], names: tuple[str, str]) -> PlanDiff:
    """Compare two plans, of the same inputs or of others; ``names`` are shown."""
    first, second = plans
    verdicts = (_verdict(first), _verdict(second))
    alike = verdicts[0].objective_kind == verdicts[1].objective_kind
    values = (_values(p, v, alike) for p, v in zip(plans, verdicts, strict=True))
    rows = _changes(_rows(first), _rows(second))
    inputs = (c for c in _joint(_inputs(first), _inputs(second)) if c.before != c.after)
    return PlanDiff(
        names=names,
        titles=(_title(first), _title(second)),
        standings=(verdicts[0].standing, verdicts[1].standing),
        rows=rows,
        inputs=tuple(inputs),
        figures=tuple(_joint(*values)),
        moved={change.key: _bytes(change.key, second) for change in rows.changed},
        num_ranks=(first.instance.num_ranks, second.instance.num_ranks),
    )


def _changes(before: Mapping[str, TableRow], after: Mapping[str, TableRow]) -> Changes:
    both = [Change(key, before[key], after[key]) for key in after if key in before]
    changed = tuple(c for c in both if _place(c.before) != _place(c.after))
    return Changes(
        changed, len(both) - len(changed), tuple(key for key in before if key not in after),
        tuple(key for key in after if key not in before),
    )  # fmt: skip


def _joint(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Every key of either, with both values."""
    for key in dict.fromkeys([*before, *after]):
        yield Change(key, before.get(key), after.get(key))


def _title(plan: Plan) -> str:
    kind = plan.instance.objective.value
    return f"{plan.model.name} on {plan.cluster.name}, {plan.profile.name}, minimising {kind}"


def _verdict(plan: Plan) -> VerdictInfo:
    held = held_info(plan)
    return verdict_of(plan.instance, plan.outcome, None if held is None else held.ledger)


def _rows(plan: Plan) -> dict[str, TableRow]:
    placement = plan.outcome.placement
    if placement is None:
        return {}
    return {row.name: row for row in tables_of(plan.instance, placement).rows}


def _place(row: TableRow) -> tuple[str, list[list[int]]]:
    return row.option, [sorted(block) for block in row.ranks]


def _bytes(table: str, plan: Plan) -> int:
    assert plan.outcome.placement is not None
    index = plan.instance.table_names.index(table)
    return moved_bytes(plan.instance, plan.outcome.placement, [index])


def _ranks(row: TableRow) -> tuple[int, ...]:
    return tuple(rank for block in row.ranks for rank in block)


def _values(plan: Plan, verdict: VerdictInfo, comparable: bool) -> dict[str, int | None]:
    """The figures of one plan by their names; bounds only where both are of one objective."""
    kinds = ("step_time", "pipelined_step", "busiest_rank", "total")
    found = {kind: verdict.objectives[kind] for kind in kinds if kind in verdict.objectives}
    bounds = {"bound": verdict.bound, "certified bound": verdict.certified_bound}
    times = {f"phase {name}": time for name, time in _phases(plan).items()}
    used = {f"fullest {place.resource}": place.used for place in verdict.fullest}
    return {**found, **(bounds if comparable else {}), **times, **used}


def _phases(plan: Plan) -> dict[str, int]:
    placement = plan.outcome.placement
    if placement is None:
        return {}
    info = ranks_of(plan.instance, placement)
    return {n: t for n, t in zip(info.phases, info.barriers, strict=True) if t}


def _figure(name: str, value: int | None) -> str:
    if value is None:
        return UNKNOWN
    return show_bytes(value) if name.startswith("fullest") else show_cost(value, "ps")


def _inputs(plan: Plan) -> dict[str, Any]:
    parts = ("model", "cluster", "profile")
    return _joined([(what, getattr(plan, what).to_dict()) for what in parts])


def _flat(value: Any, path: str) -> dict[str, Any]:
    """Plain values by their path; lists of named things by name, equal entries of others once."""
    if isinstance(value, Mapping):
        items = [(f"{path}.{name}", each) for name, each in value.items()]
    elif isinstance(value, list) and all(isinstance(v, Mapping) and "name" in v for v in value):
        items = [(f"{path}[{each['name']}]", each) for each in value]
    elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
        alike = all(each == value[0] for each in value)
        items = [(f"{path}[{'all' if alike else i}]", each) for i, each in enumerate(value)]
        return {f"{path}.count": len(value)} | _joined(items)
    else:
        return {path: value}
    return _joined(items)


def _joined(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: v for path, each in items for name, v in _flat(each, path).items()}
