"""Answers about a plan on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost, show_gap

if TYPE_CHECKING:
    from milp_planner.features.explain.sensitivity import SensitivityInfo, Side, Single, Summary
    from milp_planner.features.explain.why import Alternative, WhyInfo

MOST_TABLES = 20


def draw_why(info: WhyInfo, everything: bool = False) -> RenderableType:
    """One row per table with its option, then one per alternative."""
    shown = info.tables if everything else info.tables[:MOST_TABLES]
    rows, now = [], show_cost(info.objective, info.time_unit)
    for table in shown:
        rows.append([table.table, table.option, now, "chosen"])
        for other in table.alternatives:
            rows.append(["", f"  {other.option}", cost_text(info, other), reason(info, other)])
    head = ("table", "option", f"#{info.objective_kind}", "")
    grid = Grid.plain(head, rows, {"option": 30, "table": 12, "": 24}, folded=("",))
    notes, hidden = [], len(info.tables) - len(shown)
    if info.left:
        asked = f"the {len(info.tables)} costliest of {len(info.tables) + info.left} tables"
        notes.append(f"explained: {asked}; {len(shown)} shown (--table NAME explains another)")
    elif hidden:
        notes.append(f"… and {hidden} more tables (--all shows them, --table NAME one)")
    costs = [o.cost for table in info.tables for o in table.alternatives if o.cost is not None]
    known = info.objective if info.best is None else info.best
    if (best := min(costs, default=known)) < known:
        notes.append(f"a better plan turned up: {show_cost(best, info.time_unit)}")
    title = "why: every table's option, the best alternatives, and what they would cost"
    about = Text("… short: what is missing if every other table stays where it is", style="dim")
    return headed(title, grid, *notes, about)


def cost_text(info: WhyInfo, other: Alternative) -> str:
    """The cost of a re-solved alternative, or its bounds."""
    if other.status == "infeasible":
        return "impossible"
    if other.status == "optimal":
        return show_cost(other.cost, info.time_unit)
    if other.cost is not None:
        low = show_cost(other.bound, info.time_unit)
        return f"{low} to {show_cost(other.cost, info.time_unit)}"
    return UNKNOWN if other.bound is None else f"≥ {show_cost(other.bound, info.time_unit)}"


def reason(info: WhyInfo, other: Alternative) -> str:
    """Why it was not chosen, in a few words."""
    if other.status == "infeasible":
        return f"forbidden by {', '.join(other.forbidden_by)}" if other.forbidden_by else "no plan"
    parts = [
        f"{show_amount(s.short_by, info.time_unit)} of {s.resource} short on {s.scope} {s.place}"
        for s in other.lacks
    ]
    parts += [f"breaks {name}" for name in other.clashes]
    if parts:
        return ", ".join(parts)
    if other.cost is not None and other.cost < info.objective:
        given = info.best is not None and other.cost >= info.best
        return (
            "no slower; the plan gave this up for its goals" if given else "better than this plan"
        )
    if other.cost is not None and other.cost == info.objective:
        return "equally good" if other.status == "optimal" else "as good, as far as known"
    if other.status == "optimal" and other.cost is not None:
        return f"slower by {show_cost(other.cost - info.objective, info.time_unit, digits=3)}"
    if other.bound is not None and other.bound > info.objective:
        least = show_cost(other.bound - info.objective, info.time_unit, digits=3)
        return f"slower by {least} or more"
    return "slower, as far as known"


def draw_sensitivity(info: SensitivityInfo) -> RenderableType:
    """One row per parameter, then the draws that change all at once."""
    grid = sensitivity_grid(info)
    notes = (Text(text, style="dim") for text in remarks(info))
    title = "sensitivity: prices within their spread, solved again"
    return headed(title, *([grid] if grid.rows else []), draws_text(info), *notes)


def sensitivity_grid(info: SensitivityInfo) -> Grid:
    """One row per parameter that affects some price."""
    head = ("parameter", "spread", "lower", "higher", "#changes at", "#regret up to")
    rows: list[Cells] = [
        (
            one.parameter.name,
            Cell(spread_text(one), one.parameter.spread),
            *map(end_text, (one.lower, one.higher)),
            first_change_text(one),
            worst_text(one),
        )
        for one in info.singles
        if one.lower or one.higher
    ]
    name, least = "sensitivity-rows", {"lower": 16, "higher": 16}
    return Grid.of(name, "parameters", "One parameter at a time", head, rows, least)


def spread_text(one: Single) -> str:
    """A parameter's spread, and whether it was measured."""
    word = "" if one.parameter.measured else " assumed"
    return f"±{100 * one.parameter.spread:.3g}%{word}"


def end_text(side: Side | None) -> str:
    """The verdict at one end of a spread."""
    if side is None:
        return "no effect"
    end = side.end
    if end.verdict == "changes" and end.tables is not None:
        return f"changes, {end.tables} table{'' if end.tables == 1 else 's'}"
    return "no longer fits" if end.verdict == "unfit" else end.verdict


def first_change_text(one: Single) -> str:
    """The first relative change on either side at which the plan changes."""
    parts = []
    for side in (one.lower, one.higher):
        if side is not None and side.changes_at is not None:
            parts.append(f"{100 * side.changes_at:+.3g}%")
    return " and ".join(parts) or UNKNOWN


def worst_text(one: Single) -> str:
    """The larger regret of the two ends."""
    found = [s.end.regret for s in (one.lower, one.higher) if s is not None and s.end.regret]
    if not found:
        return UNKNOWN
    return interval_text(max(least for least, _ in found), _most([most for _, most in found]))


def draws_text(info: SensitivityInfo) -> str:
    """How often the plan changes when all prices are wrong at once, and what keeping it costs."""
    if not info.draws:
        return "all at once: no draw was made"
    made = len(info.draws)
    few = "" if made == info.asked else f" of {info.asked} requested"
    found = info.summary
    parts = [f"the plan changes in {found.changes}, stays best in {found.same}"]
    parts += [f"is left open in {found.open}"] if found.open else []
    parts += [f"no longer fits in {found.unfit}"] if found.unfit else []
    count = f"{made} draw{'' if made == 1 else 's'}{few}"
    return f"all at once, {count}: {', '.join(parts)}; {_regret_text(found)}"


def _regret_text(found: Summary) -> str:
    if found.least[0] is None:
        return "regret unknown"
    median, worst = (interval_text(a, b) for a, b in zip(found.least, found.most, strict=True))
    return f"regret of keeping it: median {median}, worst {worst}"


def remarks(info: SensitivityInfo) -> list[str]:
    """The assumptions behind the figures."""
    found = [f"draws: each parameter uniform in its spread, independently; seed {info.seed}"]
    if any(not one.parameter.measured for one in info.singles):
        found.append(
            f"assumed: the profile gives no spread, so ±{100 * info.assumed:.3g}% is taken"
        )
    idle = [one.parameter.name for one in info.singles if not (one.lower or one.higher)]
    if idle:
        found.append(f"no price of any option depends on: {', '.join(idle)}")
    if info.untried:
        found.append(f"not tried in the time given: {', '.join(info.untried)}")
    if info.bound is None or info.bound < info.now:
        found.append("the plan is not proved best at its own prices, so regret includes that gap")
    if info.better is not None:
        cost = show_cost(info.better, info.time_unit)
        found.append(
            f"a better plan at its own prices turned up: {cost}; plan again with more time"
        )
    return found


def interval_text(least: float | None, most: float | None) -> str:
    """A regret, or the interval that contains it."""
    if least is None or least == most:
        return show_gap(least)
    if most is None:
        return f"{show_gap(least)} or more"
    return f"{show_gap(least)} to {show_gap(most)}"


def _most(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return None if len(known) < len(values) else max(known)
