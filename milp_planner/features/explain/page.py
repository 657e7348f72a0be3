"""The sections of explanations, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator

from milp_planner.drawing.page import (
    Cell,
    Grid,
    Key,
    Part,
    Section,
    Values,
    columns,
    filled,
    rows,
    sentence,
)
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost, show_gap, show_ranks
from milp_planner.features.explain.answers import Answers
from milp_planner.features.explain.diff import DiffInfo
from milp_planner.features.explain.draw import (
    cost_text,
    grid_text,
    reason,
    slope_text,
    staircase_grid,
)
from milp_planner.features.explain.frontier import FrontierInfo
from milp_planner.features.explain.page_curves import draw_frontier, draw_replan, draw_staircase
from milp_planner.features.explain.page_what_if import (
    robust_section,
    sensitivity_section,
    smallest_section,
)
from milp_planner.features.explain.replan import ReplanInfo, pays_text, replan_grid
from milp_planner.features.explain.staircase import StaircaseInfo
from milp_planner.features.explain.why import WhyInfo

#: Rows of *why* on a page, so that it stays under a megabyte.
MOST_ALTERNATIVES = 3000


def explained(answers: Answers) -> Iterator[Section]:
    """A section for each answer there is."""
    if answers.staircase:
        yield _staircase_section(answers.staircase)
    if answers.frontier is not None:
        yield _frontier_section(answers.frontier)
    smallest = smallest_section(answers.smallest, answers.machines)
    if smallest is not None:
        yield smallest
    if answers.replan is not None:
        yield _replan_section(answers.replan)
    if answers.diff is not None:
        yield _diff_section(answers.diff)
    if answers.robust is not None:
        yield robust_section(answers.robust)
    if answers.sensitivity is not None:
        yield sensitivity_section(answers.sensitivity)
    if answers.why is not None:
        yield _why_section(answers.why)


def _staircase_section(infos: tuple[StaircaseInfo, ...]) -> Section:
    """What more memory buys, tier by tier."""
    parts = []
    for info in infos:
        drawing = draw_staircase(info)
        if drawing is not None:
            parts.append(Part(drawing.title, drawing.render(), sentence(slope_text(info))))
        parts.append(Part(table=staircase_grid(info)))
    keys = (
        Key("mark objective", "proved best at this capacity"),
        Key("mark open", "best known; a vertical line reaches down to the bound"),
    )
    text = (
        "Each point is solved, or settled by its neighbours. Broken line: the relaxation at the "
        "plan's multipliers."
    )
    return Section("staircase", "What more memory buys", text, keys, tuple(parts))


def _frontier_section(info: FrontierInfo) -> Section:
    """Efficient points and plans."""
    word = f"Efficient points of {grid_text(info)}."
    parts = [Part(table=_plans(info)), Part(table=_points(info))]
    drawing = draw_frontier(info)
    if drawing is not None:
        parts.insert(0, Part("", drawing.render(), drawing.about))
    more = f"; larger: more {info.tiers[1].upper()}" if len(info.tiers) > 1 else ""
    keys = (Key("mark objective", f"efficient, proved{more}"),
            Key("mark dim", "not efficient or open"), Key("plan", "a plan"))  # fmt: skip
    return Section("frontier", "Frontier", word, keys if drawing else (), tuple(parts))


def _plans(info: FrontierInfo) -> Grid:
    values: Values = [
        [
            plan.label, *(Cell(show_amount(u, info.time_unit), u) for u in plan.used),
            Cell(show_cost(plan.objective, info.time_unit), plan.objective),
            "" if plan.fits else "does not fit",
        ]
        for plan in info.plans
    ]  # fmt: skip
    used = (f"#{tier.upper()} used" for tier in info.tiers)
    head, values = filled(columns("plan", *used, f"#{info.objective_kind}", "fits"), values)
    return Grid("frontier-plans", "plans", "Plans off the frontier", head, rows(values))


def _points(info: FrontierInfo) -> Grid:
    values: Values = []
    for point in info.points:
        used = point.used or (None,) * len(info.tiers)
        values.append(
            [*(Cell(show_amount(c, info.time_unit), c) for c in point.caps),
             *(Cell(show_amount(u, info.time_unit), u) for u in used),
             Cell(show_cost(point.objective, info.time_unit), point.objective),
             Cell(show_gap(point.gap), point.gap), point.status,
             "efficient" if point.efficient else ""]
        )  # fmt: skip
    tiers = [f"#{tier.upper()} {word}" for word in ("limit", "used") for tier in info.tiers]
    head = columns(*tiers, f"#{info.objective_kind}", "#gap", "status", "frontier")
    return Grid("frontier-points", "frontier", "Every point solved", head, rows(values))


def _replan_section(info: ReplanInfo) -> Section:
    """The trade-off between moving and running."""
    drawing = draw_replan(info)
    parts = [Part(table=replan_grid(info))]
    if drawing is not None:
        parts.insert(0, Part("", drawing.render(), drawing.about))
    now = "no longer fits" if info.now is None else show_cost(info.now, info.time_unit)
    return Section("replan", "Re-planning", f"The plan in production: {now}.", parts=tuple(parts))


def _diff_section(info: DiffInfo) -> Section:
    """What moves between two plans."""
    values: Values = [
        [
            row.table, row.change, row.before or UNKNOWN, row.after or UNKNOWN,
            show_ranks([r for block in row.ranks_before for r in block], -1),
            show_ranks([r for block in row.ranks_after for r in block], -1),
            Cell(show_amount(row.bytes, info.time_unit), row.bytes),
        ]
        for row in info.tables
    ]  # fmt: skip
    head = columns("table", "change", "before", "after", "ranks before", "ranks after", "#bytes")
    caption = f"{info.moved_tables} tables move, {info.same} stay"
    grid = Grid("diff-tables", "changes", caption, head, rows(values))
    return Section("diff", "Against another plan", pays_text(info), parts=(Part(table=grid),))


def _why_section(info: WhyInfo) -> Section:
    """Every table's alternatives, as many as a page has room for."""
    every: Values = [
        [table.table, table.option, other.option, cost_text(info, other), reason(info, other)]
        for table in info.tables
        for other in table.alternatives
    ]
    head = columns("table", "chosen", "alternative", info.objective_kind, "why not")
    caption = f"The plan: {info.objective_kind} {show_cost(info.objective, info.time_unit)}"
    grid = Grid("why-rows", "alternatives", caption, head, rows(every[:MOST_ALTERNATIVES]))
    text = "The best others of each table, and what a plan with them costs now."
    if len(every) > MOST_ALTERNATIVES:
        text += f" The first {MOST_ALTERNATIVES:,} of {len(every):,}; explain --all shows them all."
    return Section("why", "Why each table is where it is", text, parts=(Part(table=grid),))
