"""What differs between two plans: inputs, objectives, phases, memories, tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from formulations.result.check import moved_bytes
from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.page import Fact, Part, Section, fill
from milp_planner.drawing.units import (
    UNKNOWN,
    listed,
    show_bytes,
    show_cost,
    show_ranks,
)
from milp_planner.features.plan.held import held_info
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.features.plan.tables import TableRow, tables_of
from milp_planner.features.plan.verdict import VerdictInfo, verdict_of
from milp_planner.files import Facts
from milp_planner.plans.placement import Plan

MOST_INPUTS = 20
"""Most differences of the inputs that are drawn; --json has all."""
MOST_TABLES = 40
"""Most tables on the terminal; the page has all."""


@dataclass(frozen=True)
class InputChange:
    """A field of model, cluster or profile that differs; None where one of them lacks it."""

    field: str
    """As in ``model.tables[users].rows``."""
    before: Any
    after: Any


@dataclass(frozen=True)
class Figure:
    """A figure of both plans; None where a plan has none."""

    name: str
    unit: str
    """``ps`` or ``bytes``."""
    before: int | None
    after: int | None

    @property
    def change(self) -> str:
        """The relative change, in words."""
        return change_of(self.before, self.after)

    def show(self, value: int | None) -> str:
        """A value with its unit."""
        if value is None:
            return UNKNOWN
        return show_cost(value, "ps") if self.unit == "ps" else show_bytes(value)


@dataclass(frozen=True)
class TableChange:
    """A table that both plans place, differently."""

    name: str
    before: str
    after: str
    """Options."""
    ranks_before: tuple[int, ...]
    ranks_after: tuple[int, ...]
    cost_before: int
    cost_after: int
    """Largest sum of its shards' times on one rank, picoseconds."""
    bytes: int
    """Bytes of its shards in the second plan, all of which move."""


@dataclass(frozen=True)
class PlanDiff(Facts):
    """Two plans side by side."""

    names: tuple[str, str]
    """Files of the plans."""
    titles: tuple[str, str]
    """Model, cluster and objective of each."""
    standings: tuple[str, str]
    """What is proved of each."""
    inputs: tuple[InputChange, ...]
    figures: tuple[Figure, ...]
    tables: tuple[TableChange, ...]
    """Those with another option or other ranks, in the order of the second plan."""
    alike: int
    """Tables with the same option on the same ranks."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    """Tables that only the second, or only the first, places."""
    num_ranks: tuple[int, int]

    @property
    def moved(self) -> int:
        """Bytes of the tables that differ."""
        return sum(table.bytes for table in self.tables)


def change_of(before: float | None, after: float | None) -> str:
    """``+3.21%``, ``same``, or nothing where a value is missing or the first is 0."""
    if before is None or after is None:
        return ""
    if before == after:
        return "same"
    return f"{(after - before) / before:+.2%}" if before else ""


def diff_of_plans(plans: tuple[Plan, Plan], names: tuple[str, str]) -> PlanDiff:
    """Compare two plans, of the same inputs or of others; ``names`` are shown."""
    first, second = plans
    verdicts = (_verdict(first), _verdict(second))
    rows = (_rows(first), _rows(second))
    both = [name for name in rows[1] if name in rows[0]]
    changed = [name for name in both if _place(rows[0][name]) != _place(rows[1][name])]
    return PlanDiff(
        names=names,
        titles=(_title(first), _title(second)),
        standings=(verdicts[0].standing, verdicts[1].standing),
        inputs=tuple(_inputs(first, second)),
        figures=tuple(_figures(plans, verdicts)),
        tables=tuple(_change(rows[0][name], rows[1][name], second) for name in changed),
        alike=len(both) - len(changed),
        added=tuple(name for name in rows[1] if name not in rows[0]),
        removed=tuple(name for name in rows[0] if name not in rows[1]),
        num_ranks=(first.instance.num_ranks, second.instance.num_ranks),
    )


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


def _change(before: TableRow, after: TableRow, plan: Plan) -> TableChange:
    placement = plan.outcome.placement
    assert placement is not None
    index = plan.instance.table_names.index(after.name)
    return TableChange(
        name=after.name,
        before=before.option,
        after=after.option,
        ranks_before=_ranks(before),
        ranks_after=_ranks(after),
        cost_before=before.cost,
        cost_after=after.cost,
        bytes=moved_bytes(plan.instance, placement, [index]),
    )


def _ranks(row: TableRow) -> tuple[int, ...]:
    return tuple(rank for block in row.ranks for rank in block)


def _figures(
    plans: tuple[Plan, Plan], verdicts: tuple[VerdictInfo, VerdictInfo]
) -> Iterator[Figure]:
    first, second = verdicts
    for kind in ("step_time", "pipelined_step", "busiest_rank", "total"):
        if kind not in first.objectives and kind not in second.objectives:
            continue
        yield Figure(kind, "ps", first.objectives.get(kind), second.objectives.get(kind))
    if first.objective_kind == second.objective_kind:
        yield Figure("bound", "ps", first.bound, second.bound)
        yield Figure("certified bound", "ps", first.certified_bound, second.certified_bound)
    times = [_phases(plan) for plan in plans]
    for name in dict.fromkeys([*times[0], *times[1]]):
        yield Figure(f"phase {name}", "ps", times[0].get(name), times[1].get(name))
    used = [{place.resource: place.used for place in v.fullest} for v in verdicts]
    for name in dict.fromkeys([*used[0], *used[1]]):
        yield Figure(f"fullest {name}", "bytes", used[0].get(name), used[1].get(name))


def _phases(plan: Plan) -> dict[str, int]:
    """The longest time on any rank, by phase."""
    placement = plan.outcome.placement
    if placement is None:
        return {}
    info = ranks_of(plan.instance, placement)
    return {n: t for n, t in zip(info.phases, info.barriers, strict=True) if t}


def _inputs(first: Plan, second: Plan) -> Iterator[InputChange]:
    for what in ("model", "cluster", "profile"):
        before, after = (_flat(getattr(p, what).to_dict(), what) for p in (first, second))
        for field in dict.fromkeys([*before, *after]):
            if before.get(field) != after.get(field):
                yield InputChange(field, before.get(field), after.get(field))


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


def draw_plan_diff(info: PlanDiff) -> RenderableType:
    """The terminal's drawing."""
    parts: list[RenderableType] = [
        Text(f"{sign} {name}: {title}; {standing}")
        for sign, name, title, standing in zip(
            "ab", info.names, info.titles, info.standings, strict=True
        )
    ]
    parts.append(figure_grid(info))
    if info.inputs:
        parts.append(headed(f"inputs: {len(info.inputs):,} fields differ", input_grid(info)))
    shown = [table_grid(info, MOST_TABLES)] if info.tables else []
    hidden = len(info.tables) - MOST_TABLES
    more = [f"… and {hidden:,} more tables (the page and --json have all)"] if hidden > 0 else []
    return Group(*parts, headed(_summary(info), *shown, *more))


def _summary(info: PlanDiff) -> str:
    text = f"tables: {len(info.tables):,} differ ({show_bytes(info.moved)}), {info.alike:,} alike"
    for what, names in (("only in a", info.removed), ("only in b", info.added)):
        if names:
            text += f"; {what}: {listed(names, 6)}"
    return text


def figure_grid(info: PlanDiff) -> Grid:
    """Objectives, bounds, phases and memories."""
    rows: list[Cells] = [
        [f.name, Cell(f.show(f.before), f.before), Cell(f.show(f.after), f.after), f.change]
        for f in info.figures
    ]
    caption = "Figures of both plans"
    return Grid.of("figures", "figures", caption, ("figure", "#a", "#b", "#change"), rows)


def input_grid(info: PlanDiff) -> Grid:
    """The first differences of the inputs."""
    rows = [[c.field, _plain(c.before), _plain(c.after)] for c in info.inputs[:MOST_INPUTS]]
    left = len(info.inputs) - len(rows)
    if left > 0:
        rows.append([f"… and {left:,} more", "", ""])
    head, least = ("field", "a", "b"), {"a": 12, "b": 12}
    return Grid.of("inputs", "inputs", "Fields that differ", head, rows, least)


def _plain(value: Any) -> str:
    return UNKNOWN if value is None else str(value)


def table_grid(info: PlanDiff, most: int | None = None) -> Grid:
    """The tables that differ, those with the most bytes first."""
    chosen = sorted(info.tables, key=lambda t: -t.bytes)[:most]
    rows: list[Cells] = [
        (
            t.name,
            *(t.before, show_ranks(t.ranks_before, info.num_ranks[0])),
            *(t.after, show_ranks(t.ranks_after, info.num_ranks[1])),
            *(Cell.cost(value, "ps") for value in (t.cost_before, t.cost_after)),
            Cell.amount(t.bytes),
        )
        for t in chosen
    ]
    head = ("table", "a", "ranks a", "b", "ranks b", "#time a", "#time b", "#bytes")
    caption, least = "Tables with another option or other ranks", {"table": 10, "a": 14, "b": 14}
    return Grid.of("tables", "tables", caption, head, rows, least)


def render_plan_diff(info: PlanDiff) -> str:
    """The page as text: self-contained, with styles and script inside."""
    inputs = Section(
        "inputs", "Inputs", parts=(Part(table=input_grid(info)),) if info.inputs else (),
        points=() if info.inputs else ("Model, cluster and profile are equal.",),
    )  # fmt: skip
    kept = [Part(table=table_grid(info))] if info.tables else []
    return fill(
        title="Two plans",
        subtitle=f"a: {info.names[0]}, {info.titles[0]}. b: {info.names[1]}, {info.titles[1]}.",
        strip=[Fact(side, word) for side, word in zip("ab", info.standings, strict=True)]
        + [Fact(f.name, f.show(f.after), f.change or "") for f in info.figures[:3]],
        sections=[
            Section("figures", "Figures", parts=(Part(table=figure_grid(info)),)),
            inputs,
            Section("tables", "Tables", f"{_summary(info).capitalize()}.", parts=tuple(kept)),
        ],
        footer="Written by milp-planner. Times are the prices of each plan's own profile.",
    )
