"""A frontier, or the least amount, on the terminal, on the page, and as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.charts import Drawing, Line, Mark, PlaceScale, Scale, chart, padded
from milp_planner.drawing.grid import Cell, Cells, Grid, csv_text, headed
from milp_planner.drawing.page import Key, Part, Section, sentence
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost, show_rate
from milp_planner.features.explain.frontier import FrontierInfo, Point
from milp_planner.features.plan.shortage import file_line
from milp_planner.request.questions import STASH

#: Characters of the longest bar on the terminal.
BAR = 30


def title_of(info: FrontierInfo) -> str:
    """The title: the objective over the kind of amount."""
    return f"{info.objective_kind} over {_name(info)}"


def _name(info: FrontierInfo) -> str:
    return f"{info.over.upper()} of each {info.scope}" if info.memory else info.over


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
    """One row per amount; ``bar`` adds a column."""
    unit = info.time_unit
    sizes = ["#for tables"] if info.memory else ["#batch|batch a rank", "#samples/s"]
    name = info.over.upper() if info.memory else info.over.rpartition(".")[2]
    head = [f"#{name}", *sizes]
    head += [f"#{info.objective_kind}", "#certified ≥", "#gap", "answer", *([""] if bar else [])]
    rows: list[Cells] = []
    for index, p in enumerate(info.points):
        mark = "*" if p.budget == info.here else ""
        rate = p.samples_a_second(unit)
        rows.append([
            Cell(_budget(info, p.budget) + mark, None if isinstance(p.budget, str) else p.budget),
            *([Cell.amount(p.usable, unit)] if info.memory else
              [Cell.count(p.batch), Cell(UNKNOWN if rate is None else show_rate(rate), rate)]),
            *(Cell.cost(value, unit) for value in (p.objective, p.certified)),
            Cell.gap(p.gap), _answer(p), *bar[index : index + 1],
        ])  # fmt: skip
    return Grid.of(f"frontier-{info.over}", "budgets", title_of(info), head, rows)


def _answer(point: Point) -> str:
    """The standing of a point's answer, in a word or two."""
    word = point.standing.partition(",")[0]
    return word if point.verified else f"{word} (refuted)"


def _budget(info: FrontierInfo, amount: int | str) -> str:
    return show_amount(amount, info.time_unit) if info.memory else str(amount)  # type: ignore[arg-type]


def notes(info: FrontierInfo, legend: str) -> list[str]:
    """What the figures mean, and how they were obtained."""
    solved = [p.seconds for p in info.points if p.seconds is not None]
    sentences = [f"*: the plan's own; {legend}"]
    if info.over == STASH:
        sentences.append("STASH: the most bytes that a rank copies to host memory in a step")
    elif info.memory:
        sentences.append(
            f"{info.over.upper()} with reservations, and what they leave for tables; the other "
            "memories stay as they are"
        )
    else:
        sentences.append(held_text(info))
    by = "" if len(solved) == len(info.points) else "; the others follow from their neighbours"
    verified = sum(p.verified for p in info.points)
    sentences.append(
        f"{len(solved)} of {len(info.points)} solved, {sum(solved):.3g} s in all{by}; "
        f"{verified} of {len(info.points)} re-derived without a solver"
    )
    if info.slope is not None and info.time_unit == "ps":
        each = show_cost(round(abs(info.slope) * 2**30), "ps")
        sign = "−" if info.slope < 0 else ""
        price = f"{sign}{each} for each GiB more at every place"
        sentences.append(f"the relaxation's price near this plan: {price}")
    return sentences


def held_text(info: FrontierInfo) -> str:
    """The global batch of the points, and what their rates count."""
    batches = [p.ranks * p.batch for p in info.points]
    low, high = min(batches), max(batches)
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    text = f"a step has {each} samples on all ranks together"
    if low < high < low + max(p.ranks for p in info.points):
        text += ", as every rank takes as many"
    return f"{text}; samples/s counts {info.objective_kind} alone"


def frontier_svg(info: FrontierInfo) -> Drawing | None:
    """Plans as steps, marks with their bounds, and the band of possible optima between them."""
    unit, known = info.time_unit, [p for p in info.points if p.objective is not None]
    if not known:
        return None
    numbers = {p.budget: i for i, p in enumerate(info.points)}
    named = any(isinstance(p.budget, str) for p in info.points)
    x = {p.budget: numbers[p.budget] if named else int(p.budget) for p in info.points}
    values = [v for p in known for v in (p.objective, p.certified) if v is not None]
    marks = [
        Mark(x[p.budget], p.objective or 0, "mark objective" if p.objective == p.certified else
             "mark open",
             f"{_budget(info, p.budget)}: {show_cost(p.objective, unit)}, {p.standing}",
             low=p.certified)
        for p in known
    ]  # fmt: skip
    lines = []
    if info.memory:
        plans = [(x[p.budget], p.objective or 0) for p in known]
        lines = [
            Line("", list(_band(known, x)), style="band", straight=True),
            Line("", [*plans, (plans[-1][0], plans[-1][1])], style="line objective"),
        ]
    shown: tuple[Callable[[float], str], Callable[[float], str]] = (
        lambda v: _budget(info, info.points[round(v)].budget if named else round(v)),
        lambda v: show_cost(round(v), unit),
    )
    low = padded(min(values), max(values))[0]
    marks += [
        Mark(x[p.budget], low, "over", f"{_budget(info, p.budget)}: {p.standing}")
        for p in info.points if p.status == "infeasible"
    ]  # fmt: skip
    optimal = sum(p.objective == p.certified for p in known)
    return chart(
        title_of(info), f"{len(known)} budgets with a plan, {optimal} certified optimal", lines,
        (PlaceScale(min(x.values()), max(x.values()), places=tuple(x.values())),
         Scale(*padded(min(values), max(values)))),
        (_name(info), info.objective_kind), shown, marks,
    )  # fmt: skip


def _band(points: Sequence[Point], x: Mapping[int | str, int]) -> Iterator[tuple[float, float]]:
    """Corners of the band that contains the optimum between points: below the plan of the point
    before and above the certified bound of the one after, as more never costs more."""
    certified = [p.certified or 0 for p in points]
    for before, after in zip(points, [*points[1:], points[-1]], strict=True):
        yield x[before.budget], before.objective or 0
        yield x[after.budget], before.objective or 0
    for index in reversed(range(len(points))):
        yield x[points[index].budget], certified[index]
        yield x[points[max(0, index - 1)].budget], certified[index]


def draw_least(info: FrontierInfo) -> RenderableType:
    """The least amount in one sentence; numbers of machines tried, as the batch of each differs."""
    text = Text(least_sentence(info), style="bold")
    if info.memory:
        return Group(text, *map(Text, least_notes(info)))
    return headed(least_sentence(info), frontier_grid(info), *least_notes(info))


def least_sentence(info: FrontierInfo) -> str:
    """``least hbm of each rank for step_time ≤ 2.5 ms: 39 GiB (after reservations), …``."""
    least = info.least
    assert least is not None
    aim = "any plan" if least.target is None else f"{info.objective_kind} ≤ " + show_cost(
        least.target, info.time_unit)  # fmt: skip
    what = f"least {info.over} of each {info.scope}" if info.scope != "cluster" else (
        f"least {info.over} in all")  # fmt: skip
    what = what if info.memory else f"fewest {info.over}"
    found = "" if least.least is None or least.impossible else _amount(info, least.least)
    after = " (after reservations)" if found and info.memory else ""
    return f"{what} for {aim}: {found}{after}{', ' if found else ''}{least_text(info)}"


def _amount(info: FrontierInfo, value: int | None) -> str:
    return show_amount(value, info.time_unit) if info.memory else str(value)


def least_text(info: FrontierInfo) -> str:
    """How certain the least amount is."""
    least = info.least
    assert least is not None
    most = _amount(info, least.searched)
    if least.impossible or (least.least is None and least.too_small == least.searched):
        return f"proved: nothing up to {most} is enough"
    if least.least is None:
        return "not found in the time limit"
    if least.proved:
        return "proved to the byte" if info.memory else "proved"
    if least.too_small is None or not info.memory:
        return "fewer may do" if not info.memory else "less may do"
    return f"proved to within {show_amount(least.least - least.too_small, info.time_unit)}"


def least_notes(info: FrontierInfo) -> list[str]:
    """The line for the cluster's file, or the batch of every number of machines."""
    least = info.least
    assert least is not None
    if not info.memory:
        return [held_text(info)]
    return [] if least.memory is None else [file_line(info.over, least.memory, info.scope)]


def least_section(infos: Sequence[FrontierInfo]) -> Section:
    """The page's section on the smallest cluster."""
    unit = infos[0].time_unit
    rows = [
        (
            _name(info),
            *(Cell(_amount(info, v), v) if v is not None else UNKNOWN
              for v in (info.least.least, info.least.too_small)),
            Cell.cost(min((p.objective for p in info.points if p.objective is not None
                           and p.usable == info.least.least), default=None), unit),
            least_text(info),
        )
        for info in infos
        if info.least is not None and info.memory
    ]  # fmt: skip
    head = ("memory", "#least that does", "#proved too small", "#objective there", "answer")
    caption = "Least memory of each tier, with the other tiers unchanged"
    parts = [Part(table=Grid.of("least", "least memory", caption, head, rows))] if rows else []
    machines = [info for info in infos if not info.memory]
    parts += [Part(table=frontier_grid(info)) for info in machines]
    text = " ".join(sentence(t) for i in machines for t in (least_sentence(i), held_text(i)))
    return Section("smallest", "The smallest cluster", text, parts=tuple(parts))


def frontier_section(infos: tuple[FrontierInfo, ...]) -> Section:
    """The page's section on frontiers."""
    parts = []
    for info in infos:
        drawing = frontier_svg(info)
        band = "between two budgets the best plan lies in the shaded band"
        sentences = notes(info, band if info.memory else "nothing is claimed between the points")
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
