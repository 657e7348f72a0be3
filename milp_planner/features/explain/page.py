"""The sections of explanations, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from formulations.settings import TracePoint
from milp_planner.drawing.charts import Drawing, Line, Mark, Scale, chart, padded
from milp_planner.drawing.grid import Grid
from milp_planner.drawing.page import Part, Section, sentence
from milp_planner.drawing.units import show_amount, show_cost
from milp_planner.features.explain.answers import Answers
from milp_planner.features.explain.cheapest import cheapest_section
from milp_planner.features.explain.draw import (
    cost_text,
    draws_text,
    reason,
    remarks,
    sensitivity_grid,
)
from milp_planner.features.explain.frontier_draw import frontier_section, least_section
from milp_planner.features.explain.sensitivity import SensitivityInfo
from milp_planner.features.explain.why import WhyInfo
from milp_planner.features.moves.limits import ReplanInfo, replan_grid
from milp_planner.features.moves.way import (
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
    if answers.frontier:
        yield frontier_section(answers.frontier)
    if answers.smallest:
        yield least_section(answers.smallest)
    if answers.cheapest is not None:
        yield cheapest_section(answers.cheapest)
    if answers.replan is not None:
        yield _replan_section(answers.replan)
    if answers.moves is not None:
        yield _moves_section(answers.moves)
    if answers.sensitivity is not None:
        yield sensitivity_section(answers.sensitivity)
    if answers.why is not None:
        yield _why_section(answers.why)


def _replan_section(info: ReplanInfo) -> Section:
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


def sensitivity_section(info: SensitivityInfo) -> Section:
    """The cost of keeping the plan where prices are wrong."""
    grid = sensitivity_grid(info)
    points = tuple(map(sentence, (draws_text(info), *remarks(info))))
    parts = (Part(table=grid),) if grid.rows else ()
    return Section("sensitivity", "Wrong prices", parts=parts, points=points)


#: Only this many of the last points of a trace are marked.
_DOTS = 40


def draw_trace(trace: Sequence[TracePoint], seconds: float, unit: str) -> Drawing | None:
    """Incumbent and bound against wall clock; None when neither was recorded."""
    known: dict[str, list[tuple[float, int]]] = {"objective": [], "bound": []}
    for point in trace:
        for name, value in (("objective", point.objective), ("bound", point.bound)):
            if value is not None:
                known[name].append((point.seconds, value))
    values = [v for line in known.values() for _, v in line]
    if not values:
        return None
    low, high = _of_interest(known, values)
    ends = ", ".join(f"{n} {show_cost(line[-1][1], unit)}" for n, line in known.items() if line)
    cut = " Values beyond the edges are cut off." if min(values) < low or max(values) > high else ""
    end = max([seconds, *(p.seconds for p in trace)], default=0.0) or 1.0
    lines = [
        Line("", [(at, min(max(value, low), high)) for at, value in line], style=f"line {name}")
        for name, line in known.items()
    ]
    marks = [
        Mark(at, v, f"mark {name}", f"{name} {show_cost(v, unit)} at {at:.2f} s", 3)
        for name, line in known.items() for at, v in line[-_DOTS:] if low <= v <= high
    ]  # fmt: skip
    return chart(
        "Best plan and bound over time", f"{ends}.{cut}", lines, (Scale(0, end), Scale(low, high)),
        ("seconds", "objective"), (lambda v: f"{v:g}", _money(unit)), marks,
    )  # fmt: skip


def _of_interest(
    known: dict[str, list[tuple[float, int]]], values: Sequence[int]
) -> tuple[float, float]:
    """The range to show: the final gap and a few times its width, as first plans may be far off."""
    low, high = padded(min(values), max(values))
    best = min((v for _, v in known["objective"]), default=None)
    bound = max((v for _, v in known["bound"]), default=None)
    if best is None:
        return low, high
    least = best if bound is None else bound
    between = max(best - least, abs(best) / 50)
    return max(low, least - 2 * between), min(high, best + 3 * between)


def draw_moves(info: MovesInfo) -> Drawing | None:
    """The objective against the bytes transferred, move after move."""
    if len(info.points) < 2:
        return None
    unit, values = info.time_unit, [point.objective for point in info.points]
    marks = [
        Mark(p.bytes, p.objective, "mark objective",
             f"after {p.moves:,} moves, {show_amount(p.bytes, unit)}: "
             f"{show_cost(p.objective, unit)}")
        for p in info.told
    ]  # fmt: skip
    counts = ", ".join(f"{point.moves:,}" for point in info.told)
    return chart(
        f"{info.objective_kind} on the way from today's plan", f"marks after {counts} moves",
        [Line("", [(p.bytes, p.objective) for p in info.points], style="line objective")],
        # bytes get binary ticks; the plain integers of literature instances get decimal ones
        (Scale(0, max(1, info.points[-1].bytes), base=2 if unit == "ps" else 10),
         Scale(*padded(min(values), max(values)))),
        ("bytes that have travelled", info.objective_kind),
        (lambda value: show_amount(round(value), unit), _money(unit)), marks,
    )  # fmt: skip


def _money(unit: str) -> Callable[[float], str]:
    return lambda value: show_cost(round(value), unit)
