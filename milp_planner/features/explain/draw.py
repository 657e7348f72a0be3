"""Answers about a plan on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.page import Cell, Grid, draw_grid, fitting_grid
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost, show_gap
from milp_planner.features.explain.draw_sensitivity import draw_sensitivity
from milp_planner.features.explain.moves import draw_moves
from milp_planner.features.explain.replan import change_text, draw_replan
from milp_planner.features.plan.ranks import draw_slowest
from milp_planner.features.plan.shortage import draw_shortage

if TYPE_CHECKING:
    from milp_planner.features.explain.answers import Answers
    from milp_planner.features.explain.memory import StaircaseInfo
    from milp_planner.features.explain.smallest import LeastInfo, MachinesInfo
    from milp_planner.features.explain.why import Alternative, WhyInfo

MOST_TABLES = 20


def draw_answers(answers: Answers, everything: bool = False) -> RenderableType:
    """Every answer there is, one after another."""
    drawn: dict[str, Callable[[Any], RenderableType]] = {
        "slowest": draw_slowest,
        "why": lambda info: _draw_why(info, everything),
        "staircase": draw_staircase,
        "smallest": _draw_least,
        "machines": draw_machines,
        "replan": draw_replan,
        "moves": lambda info: draw_moves(info, everything),
        "sensitivity": draw_sensitivity,
        "why_not": draw_shortage,
    }
    parts: list[RenderableType] = []
    for name, draw in drawn.items():
        value = getattr(answers, name)
        values = value if isinstance(value, tuple) else (value,)
        parts += [draw(each) for each in values if each is not None]
    spaced = [item for part in parts for item in (part, Text(""))]
    return Group(*spaced[:-1])


def _draw_why(info: WhyInfo, everything: bool = False) -> RenderableType:
    """One row per table with its option, one a better-known alternative below it."""
    shown = info.tables if everything else info.tables[:MOST_TABLES]
    rows, now = [], show_cost(info.objective, info.time_unit)
    for table in shown:
        rows.append([table.table, table.option, now, "chosen"])
        for other in table.alternatives:
            rows.append(["", f"  {other.option}", cost_text(info, other), reason(info, other)])
    headers = ("table", "option", info.objective_kind, "")
    grid = fitting_grid(
        headers, rows, {"option": 30, "table": 12, "": 24}, ("table", "option", ""), folded=("",)
    )
    notes, hidden = [], len(info.tables) - len(shown)
    if info.left:
        asked = f"the {len(info.tables)} costliest of {len(info.tables) + info.left} tables"
        notes.append(f"asked about {asked}, {len(shown)} shown (--table NAME asks about another)")
    elif hidden:
        notes.append(f"… and {hidden} more tables (--all shows them, --table NAME one)")
    costs = [o.cost for table in info.tables for o in table.alternatives if o.cost is not None]
    if (best := min(costs, default=info.objective)) < info.objective:
        notes.append(f"a better plan turned up: {show_cost(best, info.time_unit)}")
    title = Text(
        "why: every table's option, the best others, and what they would cost now", style="bold"
    )
    about = Text("… short: what is missing if every other table stays where it is", style="dim")
    return Group(title, grid, *map(Text, notes), about)


def cost_text(info: WhyInfo, other: Alternative) -> str:
    """The cost of a re-solved alternative, or what is known of it."""
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
        return "better than this plan"
    if other.cost is not None and other.cost == info.objective:
        return "equally good" if other.status == "optimal" else "as good, as far as known"
    if other.status == "optimal" and other.cost is not None:
        return f"slower by {show_cost(other.cost - info.objective, info.time_unit, digits=3)}"
    if other.bound is not None and other.bound > info.objective:
        least = show_cost(other.bound - info.objective, info.time_unit, digits=3)
        return f"slower by {least} or more"
    return "slower, as far as known"


def draw_staircase(info: StaircaseInfo) -> RenderableType:
    """A row per capacity; the relaxation's price below."""
    where = "in all" if info.scope == "cluster" else f"of each {info.scope}"
    title = Text(f"what more {info.tier} {where} buys", style="bold")
    return Group(title, draw_grid(staircase_grid(info)), Text(slope_text(info), style="dim"))


def staircase_grid(info: StaircaseInfo) -> Grid:
    """A row per capacity."""
    unit = info.time_unit
    return Grid.of(
        f"stairs-{info.tier}",
        f"{info.tier} staircase", f"{info.tier.upper()} of each {info.scope}",
        ("#more", "#capacity", f"#{info.objective_kind}", "#change", "#gap", "status",
         "#relaxed ≥"),
        [
            [
                Cell(("+" if s.extra > 0 else "") + show_amount(s.extra, unit), s.extra),
                Cell(show_amount(s.smallest, unit), s.smallest),
                Cell(show_cost(s.objective, unit), s.objective), change_text(s.objective, info.now),
                Cell(show_gap(s.gap), s.gap), s.status, Cell(show_cost(s.relaxed, unit), s.relaxed),
            ]
            for s in info.steps
        ],
    )  # fmt: skip


def slope_text(info: StaircaseInfo) -> str:
    """The multiplier in words, marked as the relaxation's."""
    if info.slope is None:
        return "no certificate, so no price of a byte"
    if info.time_unit != "ps":
        return f"relaxation: {info.slope:.4g} a unit more at every place, near the plan"
    each = show_cost(round(abs(info.slope) * 2**30), "ps")
    sign = "−" if info.slope < 0 else ""
    return (
        f"the relaxation's price: {sign}{each} for each GiB more at every place, near this plan; "
        "the steps above are what plans really reach"
    )


def _draw_least(info: LeastInfo) -> RenderableType:
    """One sentence: the least memory of a tier."""
    aim = "any plan" if info.target is None else f"{info.objective_kind} ≤ " + show_cost(
        info.target, info.time_unit)  # fmt: skip
    text = Text(f"least {info.tier} of each {info.scope} for {aim}: ", style="bold")
    found = "" if info.least is None or info.impossible else show_amount(info.least, info.time_unit)
    return text.append(f"{found}{', ' if found else ''}{least_text(info)}")


def least_text(info: LeastInfo) -> str:
    """How certain the least memory is."""
    if info.impossible:
        return f"proved: none up to {show_amount(info.searched, info.time_unit)} does"
    if info.least is None:
        return "not found in the time limit"
    if info.proved:
        return "proved to the byte"
    if info.too_small is None:
        return "less may do"
    return f"proved to within {show_amount(info.least - info.too_small, info.time_unit)}"


def draw_machines(info: MachinesInfo) -> RenderableType:
    """The sentence, then the tries."""
    return Group(Text(machines_text(info), style="bold"), draw_grid(machines_grid(info)))


def machines_grid(info: MachinesInfo) -> Grid:
    """A row per number of machines."""
    word = {True: "reaches it", False: "proved: misses it", None: "open"}
    return Grid.of(
        "machines", "machines", "Numbers of machines tried",
        ("#machines", f"#{info.objective_kind}", "#bound", "status", "target"),
        [
            [
                Cell(str(t.machines), t.machines),
                Cell(show_cost(t.objective, info.time_unit), t.objective),
                Cell(show_cost(t.bound, info.time_unit), t.bound), t.status, word[t.reaches],
            ]
            for t in info.tries
        ],
    )  # fmt: skip


def machines_text(info: MachinesInfo) -> str:
    """The fewest machines that do."""
    aim = "" if info.target is None else (
        f" for {info.objective_kind} ≤ {show_cost(info.target, info.time_unit)}"
    )  # fmt: skip
    found = "none of those tried" if info.fewest is None else str(info.fewest)
    word = "proved" if info.proved else "not proved: a smaller number was left open"
    return f"fewest machines{aim}: {found} ({word})"
