"""A frontier on the terminal, on the page, and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from milp_planner.drawing.charts import Drawing, Line, Mark, PlaceScale, Scale, chart, padded
from milp_planner.drawing.grid import Cell, Cells, Grid, csv_text, headed
from milp_planner.drawing.page import Key, Part, Section, sentence
from milp_planner.drawing.units import show_amount, show_cost
from milp_planner.features.explain.frontier import MACHINES, STASH, FrontierInfo, Point

#: Characters of the longest bar on the terminal.
BAR = 30


def title_of(info: FrontierInfo) -> str:
    """The title: the objective over the kind of budget."""
    where = MACHINES if info.over == MACHINES else f"{info.over.upper()} of each {info.scope}"
    return f"{info.objective_kind} over {where}"


def draw_frontier(info: FrontierInfo) -> RenderableType:
    """One row per budget with a bar: solid up to the certified bound, light up to the plan."""
    about = notes(info, "bar: certified █, then the plan ░")
    said = (Text(text, style="dim") for text in about)
    return headed(f"frontier: {title_of(info)}", frontier_grid(info, bars(info)), *said)


def bars(info: FrontierInfo) -> list[str]:
    """A bar for each point, scaled to the longest; empty without a plan."""
    longest = max((p.objective or 0 for p in info.points), default=0)

    def letters(value: int | None) -> int:
        return round(BAR * max(0, value or 0) / max(1, longest))

    return [
        "█" * letters(p.certified) + "░" * (letters(p.objective) - letters(p.certified))
        if p.objective is not None
        else ""
        for p in info.points
    ]


def frontier_grid(info: FrontierInfo, bar: Sequence[str] = ()) -> Grid:
    """One row per budget; ``bar`` adds a column."""
    unit, memory = info.time_unit, info.over != MACHINES
    head = ["#machines"] if not memory else [f"#{info.over.upper()}", "#for tables"]
    head += [f"#{info.objective_kind}", "#certified ≥", "#gap", "answer", *([""] if bar else [])]
    rows: list[Cells] = []
    for index, p in enumerate(info.points):
        mark = "*" if p.budget == info.here else ""
        rows.append([
            Cell(_budget(info, p.budget) + mark, p.budget),
            *([Cell.amount(p.usable, unit)] if memory else []),
            *(Cell.cost(value, unit) for value in (p.objective, p.certified)),
            Cell.gap(p.gap), _answer(p), *bar[index : index + 1],
        ])  # fmt: skip
    return Grid.of(f"frontier-{info.over}", "budgets", title_of(info), head, rows)


def _answer(point: Point) -> str:
    """The standing of a point's answer, in a word or two."""
    word = point.standing.partition(",")[0]
    return word if point.verified else f"{word} (refuted)"


def _budget(info: FrontierInfo, amount: int) -> str:
    return str(amount) if info.over == MACHINES else show_amount(amount, info.time_unit)


def notes(info: FrontierInfo, legend: str) -> list[str]:
    """What the figures mean, and how they were obtained."""
    solved = [p.seconds for p in info.points if p.seconds is not None]
    sentences = [f"*: the plan's own budget; {legend}"]
    if info.over == STASH:
        sentences.append("STASH: the most bytes that a rank copies to host memory in a step")
    elif info.monotone:
        sentences.append(
            f"{info.over.upper()} with reservations, and what they leave for tables; the other "
            "memories stay as they are"
        )
    else:
        sentences.append("the batch per rank is fixed: more machines process more samples per step")
    by = "" if len(solved) == len(info.points) else "; the others follow from their neighbours"
    verified = sum(p.verified for p in info.points)
    sentences.append(
        f"{len(solved)} of {len(info.points)} solved, {sum(solved):.3g} s in all{by}; "
        f"{verified} of {len(info.points)} re-derived without a solver"
    )
    return sentences


def frontier_svg(info: FrontierInfo) -> Drawing | None:
    """Plans as steps, marks with their bounds, and the band of possible optima between them."""
    unit, known = info.time_unit, [p for p in info.points if p.objective is not None]
    if not known:
        return None
    values = [v for p in known for v in (p.objective, p.certified) if v is not None]
    marks = [
        Mark(p.budget, p.objective or 0, "mark objective" if p.objective == p.certified else
             "mark open",
             f"{_budget(info, p.budget)}: {show_cost(p.objective, unit)}, {p.standing}",
             low=p.certified)
        for p in known
    ]  # fmt: skip
    lines = []
    if info.monotone:
        plans = [(p.budget, p.objective or 0) for p in known]
        lines = [
            Line("", list(_band(known)), style="band", straight=True),
            Line("", [*plans, (known[-1].budget, plans[-1][1])], style="line objective"),
        ]
    shown: tuple[Callable[[float], str], Callable[[float], str]] = (
        lambda v: _budget(info, round(v)),
        lambda v: show_cost(round(v), unit),
    )
    low = padded(min(values), max(values))[0]
    marks += [
        Mark(p.budget, low, "over", f"{_budget(info, p.budget)}: {p.standing}")
        for p in info.points if p.status == "infeasible"
    ]  # fmt: skip
    ends = info.points[0].budget, info.points[-1].budget
    optimal = sum(p.objective == p.certified for p in known)
    return chart(
        title_of(info), f"{len(known)} budgets with a plan, {optimal} certified optimal", lines,
        (PlaceScale(*ends, places=tuple(p.budget for p in info.points)),
         Scale(*padded(min(values), max(values)))),
        (MACHINES if info.over == MACHINES else f"{info.over.upper()} of each {info.scope}",
         info.objective_kind), shown, marks,
    )  # fmt: skip


def _band(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """Corners of the band that contains the optimum between points: below the plan of the point
    before and above the certified bound of the one after, as more never costs more."""
    certified = [p.certified or 0 for p in points]
    for before, after in zip(points, [*points[1:], points[-1]], strict=True):
        yield before.budget, before.objective or 0
        yield after.budget, before.objective or 0
    for index in reversed(range(len(points))):
        yield points[index].budget, certified[index]
        yield points[max(0, index - 1)].budget, certified[index]


def frontier_section(infos: tuple[FrontierInfo, ...]) -> Section:
    """The page's section on frontiers."""
    parts = []
    for info in infos:
        drawing = frontier_svg(info)
        band = "between two budgets the best plan lies in the shaded band"
        sentences = notes(info, band if info.monotone else "nothing is claimed between the points")
        if drawing is not None:
            parts.append(Part(drawing.title, drawing.render(), " ".join(map(sentence, sentences))))
        parts.append(Part(table=frontier_grid(info)))
    keys = (
        Key("mark objective", "certified optimal"),
        Key("mark open", "best known; a vertical line reaches down to what is certified"),
        Key("band", "where the best plan is"),
        Key("over", "no plan exists"),
    )
    return Section("frontier", "What a budget buys", "", keys, tuple(parts))


def to_csv(infos: Sequence[FrontierInfo]) -> str:
    """One line per point, in bytes, picoseconds and seconds; unknown values are empty."""
    columns = ("over", "budget", "usable", "status", "objective", "certified_bound",
               "certified_gap", "seconds", "verified")  # fmt: skip
    return csv_text(columns, (
        (info.over, p.budget, p.usable, p.status, p.objective, p.certified, p.gap, p.seconds,
         str(p.verified).lower())
        for info in infos for p in info.points
    ))  # fmt: skip
