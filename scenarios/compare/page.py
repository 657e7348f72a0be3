"""A comparison as one HTML file."""

from __future__ import annotations

from milp_planner.drawing.charts import Drawing, Line, LogScale, Scale, chart
from milp_planner.drawing.page import Fact, Part, Section, fill
from milp_planner.drawing.units import UNKNOWN, show_cost
from milp_planner.features.plan.verdict import MEANING
from scenarios.compare.facts import Comparison, comparison_grid

EARLIEST = 0.01
"""Seconds at the left edge; earlier points are drawn there."""
_WIDE = 20
"""The axis is logarithmic if the largest value is more than this many times the least."""


def render_comparison(info: Comparison) -> str:
    """The page as text: self-contained, with styles, script and drawings inside."""
    where = f"{info.model} on {info.cluster}" if info.model else "an Instance"
    names = ", ".join(f"{name} {digest[:16]}" for name, digest in info.fingerprints.items())
    return fill(
        title=f"{where}, compared",
        subtitle="Formulations on the same Instance: the same tables, options and capacities.",
        strip=[fact for asked in info.bounds for fact in _strip(info, asked)],
        sections=[_section(info, asked) for asked in info.bounds],
        footer=f"Written by milp-planner. Instances {names}. Feasibility is judged by the "
        "solver-free check.",
    )


def _strip(info: Comparison, asked: str) -> list[Fact]:
    """The best plan and its largest possible distance from the optimum."""
    best = info.best(asked)
    if best is None:
        words = {row.word for row in info.rows if row.asked == asked and row.status == "infeasible"}
        if not words:
            return [Fact(asked, "no plan", "nothing is proved", "unknown")]
        return [Fact(asked, min(words), "", "infeasible")]  # the certified one sorts first
    mine = [r for r in info.rows if r.asked == asked and r.feasible]
    by = next(row for row in mine if row.objectives[asked] == best)
    style = "optimal" if by.gap == 0 else "feasible"
    note = f"{info.proof(by)}; {by.label}"
    return [Fact(f"best {asked}", show_cost(best, info.time_unit), note, style)]


def _section(info: Comparison, asked: str) -> Section:
    mine = [row for row in info.rows if row.asked == asked]
    parts = [Part(table=comparison_grid(info, asked))]
    trace = _draw_progress(info, asked)
    if trace is not None:
        parts.append(Part("Best plan (bold) and bound (thin) over time", trace.render()))
    said = filter(None, (info.origin(asked), info.told_apart(asked)))
    text = f"{MEANING[asked].capitalize()}. {' '.join(said)}"
    bound = info.bounds[asked]
    if bound is not None and any((row.bound or 0) > bound.bound for row in mine):
        text += " A larger bound in the table is in floating point, and a plan refutes it."
    verdicts = tuple(f"{row.label}: {info.verdict(row)}." for row in mine)
    return Section(asked, f"Minimising {asked}", text, parts=tuple(parts), points=verdicts)


def _draw_progress(info: Comparison, asked: str) -> Drawing | None:
    """Best plan and bound of every formulation over wall time; None without either."""
    mine = [row for row in info.rows if row.asked == asked and row.trace]
    lines, about = [], []
    for number, row in enumerate(mine):
        plans = row.known("objective")
        bounds = [point for point in row.known("bound") if point[1] > 0]  # 0 is trivial
        if not (plans or bounds):
            continue
        lines += [Line(row.label, plans, number), Line("", bounds, number, lower=True)]
        last = [show_cost(each[-1][1], info.time_unit) if each else UNKNOWN
                for each in (plans, bounds)]  # fmt: skip
        about.append(f"{row.label}: plan {last[0]}, bound {last[1]}")
    points = [point for line in lines for point in line.points]
    if not points:
        return None
    values = [value for _, value in points]
    end = max(10 * EARLIEST, *(row.trace[-1].seconds for row in mine))
    low, high = min(values), max(values)
    wide = low > 0 and high > _WIDE * low
    room = 0.06 * (high - low or high or 1)
    up: Scale = Scale(max(0.0, low - room), high + room)
    if wide:
        up = LogScale(low / 1.15, high * 1.15)
    return chart(
        f"Best plan and bound over time, {asked}", "; ".join(about), lines,
        (LogScale(EARLIEST, end), up), ("seconds", asked),
        (lambda v: f"{v:g}", lambda v: show_cost(round(v), info.time_unit, digits=3)),
    )  # fmt: skip
