"""The sections of explanations, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator

from milp_planner.drawing.grid import Cell, Grid
from milp_planner.drawing.page import Key, Part, Section, sentence
from milp_planner.drawing.units import show_cost
from milp_planner.features.explain.answers import Answers
from milp_planner.features.explain.draw import (
    cost_text,
    draws_text,
    least_text,
    machines_grid,
    machines_text,
    reason,
    remarks,
    sensitivity_grid,
    staircase_grid,
    staircase_notes,
)
from milp_planner.features.explain.frontier_draw import frontier_section
from milp_planner.features.explain.memory import StaircaseInfo
from milp_planner.features.explain.page_curves import draw_moves, draw_staircase
from milp_planner.features.explain.sensitivity import SensitivityInfo
from milp_planner.features.explain.smallest import LeastInfo, MachinesInfo
from milp_planner.features.explain.why import WhyInfo
from milp_planner.features.moves.limits import ReplanInfo, replan_grid
from milp_planner.features.moves.today import (
    MovesInfo,
    moves_grid,
    moves_text,
    notes,
    tables_grid,
    told_grid,
)

#: Rows of *why* on a page, so that it stays under a megabyte.
MOST_ALTERNATIVES = 3000


def explained(answers: Answers) -> Iterator[Section]:
    """One section per answer."""
    if answers.staircase:
        yield _staircase_section(answers.staircase)
    if answers.frontier:
        yield frontier_section(answers.frontier)
    smallest = smallest_section(answers.smallest, answers.machines)
    if smallest is not None:
        yield smallest
    if answers.replan is not None:
        yield _replan_section(answers.replan)
    if answers.moves is not None:
        yield _moves_section(answers.moves)
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
            parts.append(
                Part(
                    drawing.title, drawing.render(), " ".join(map(sentence, staircase_notes(info)))
                )
            )
        parts.append(Part(table=staircase_grid(info)))
    keys = (
        Key("mark objective", "proved best at this capacity"),
        Key("mark open", "best known; a vertical line reaches down to the bound"),
    )
    text = (
        "Each point is solved, or settled by its neighbours. The dashed line is the "
        "relaxation at the plan's multipliers."
    )
    return Section("staircase", "What more memory buys", text, keys, tuple(parts))


def _replan_section(info: ReplanInfo) -> Section:
    """The trade-off between moving and running."""
    now = "no longer fits" if info.now is None else show_cost(info.now, info.time_unit)
    parts = (Part(table=replan_grid(info)),)
    return Section("replan", "Re-planning", f"The plan in production: {now}.", parts=parts)


def _moves_section(info: MovesInfo) -> Section:
    """The moves from today's plan: a curve, the gain of the first moves, every move."""
    said = [moves_text(info).removeprefix("moves: "), *notes(info)]
    parts = [Part(table=tables_grid(info))] if info.tables else []
    if info.way is not None and info.way.moves:
        parts = [Part(table=told_grid(info)), Part(table=moves_grid(info)), *parts]
        drawing = draw_moves(info)
        if drawing is not None:
            parts.insert(0, Part(drawing.title, drawing.render(), drawing.about))
    return Section("moves", "From today's plan", " ".join(map(sentence, said)), parts=tuple(parts))


def _why_section(info: WhyInfo) -> Section:
    """Every table's alternatives, as many as a page has room for."""
    every = [
        [table.table, table.option, other.option, cost_text(info, other), reason(info, other)]
        for table in info.tables
        for other in table.alternatives
    ]
    grid = Grid.of(
        "why-rows",
        "alternatives",
        f"The plan: {info.objective_kind} {show_cost(info.objective, info.time_unit)}",
        ("table", "chosen", "alternative", info.objective_kind, "why not"),
        every[:MOST_ALTERNATIVES],
    )
    text = "The best alternatives of each table, and what a plan with each of them costs."
    if len(every) > MOST_ALTERNATIVES:
        text += f" The first {MOST_ALTERNATIVES:,} of {len(every):,}; explain --all shows them all."
    return Section("why", "Why each table is where it is", text, parts=(Part(table=grid),))


def smallest_section(
    least: tuple[LeastInfo, ...] | None, machines: MachinesInfo | None
) -> Section | None:
    """The least memory of each tier, and the fewest machines."""
    if not least and machines is None:
        return None
    rows = [
        (
            f"{i.tier.upper()} of each {i.scope}",
            *(Cell.amount(value, i.time_unit) for value in (i.least, i.too_small)),
            Cell.cost(i.objective, i.time_unit),
            least_text(i),
        )
        for i in least or ()
    ]
    head = ("memory", "#least that does", "#proved too small", "#objective there", "answer")
    caption = "Least memory of each tier, with the other tiers unchanged"
    grid = Grid.of("least", "least memory", caption, head, rows)
    parts, text = [Part(table=grid)] if grid.rows else [], ""
    if machines is not None:
        text = sentence(machines_text(machines))
        parts.append(Part(table=machines_grid(machines)))
    return Section("smallest", "The smallest cluster", text, parts=tuple(parts))


def sensitivity_section(info: SensitivityInfo) -> Section:
    """The cost of keeping the plan where prices are wrong."""
    grid = sensitivity_grid(info)
    points = tuple(map(sentence, (draws_text(info), *remarks(info))))
    parts = (Part(table=grid),) if grid.rows else ()
    return Section("sensitivity", "Wrong prices", parts=parts, points=points)
