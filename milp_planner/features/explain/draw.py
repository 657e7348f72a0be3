"""Answers about a plan on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.grid import Cell, Cells, Grid, headed
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost, show_gap, show_seconds
from milp_planner.features.moves.limits import change_text
from milp_planner.features.plan.shortage import file_line

if TYPE_CHECKING:
    from milp_planner.features.explain.memory import StaircaseInfo
    from milp_planner.features.explain.sensitivity import SensitivityInfo, Side, Single, Summary
    from milp_planner.features.explain.smallest import LeastInfo, MachinesInfo
    from milp_planner.features.explain.why import Alternative, WhyInfo

MOST_TABLES = 20
#: Says that an amount is what tables may use, not the device's memory.
AFTER = "after reservations"


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


def draw_staircase(info: StaircaseInfo) -> RenderableType:
    """One row per capacity, then notes on the figures."""
    title = f"what more {info.tier} {place_text(info.scope)} buys"
    about = (Text(text, style="dim") for text in staircase_notes(info))
    return headed(title, staircase_grid(info), *about)


def place_text(scope: str) -> str:
    """The place that a capacity belongs to, in words."""
    return "in all" if scope == "cluster" else f"of each {scope}"


def staircase_notes(info: StaircaseInfo) -> list[str]:
    """How the rows were obtained, then the price of a byte."""
    notes = ["capacity: what tables may use, after reservations; device: reservations included"]
    if any(s.status == "feasible" for s in info.steps):
        notes.append(
            f"feasible: the best plan found in at most {show_seconds(info.searched)} each; "
            "a longer search may find a better one, but none below what is certified"
        )
    return [*notes, slope_text(info)]


def staircase_grid(info: StaircaseInfo) -> Grid:
    """One row per capacity."""
    unit = info.time_unit
    return Grid.of(
        f"stairs-{info.tier}",
        f"{info.tier} staircase",
        f"{info.tier.upper()} of each {info.scope}",
        ("#more", "#capacity", "#device", f"#{info.objective_kind}", "#change", "#gap", "status",
         "#certified ≥"),
        [
            (
                Cell(("+" if s.extra > 0 else "") + show_amount(s.extra, unit), s.extra),
                *(Cell.amount(value, unit) for value in (s.smallest, s.device)),
                Cell.cost(s.objective, unit),
                change_text(s.objective, info.now),
                Cell.gap(s.gap),
                s.status,
                Cell.cost(s.certified, unit),
            )
            for s in info.steps
        ],
    )  # fmt: skip


def slope_text(info: StaircaseInfo) -> str:
    """The price of a byte in words, marked as the relaxation's."""
    if info.slope is None:
        return "no certificate, so no price of a byte"
    if info.time_unit != "ps":
        return f"relaxation: {info.slope:.4g} a unit more at every place, near the plan"
    each = show_cost(round(abs(info.slope) * 2**30), "ps")
    sign = "−" if info.slope < 0 else ""
    return f"the relaxation's price: {sign}{each} for each GiB more at every place, near this plan"


def draw_least(info: LeastInfo) -> RenderableType:
    """The least memory of a tier, in one sentence."""
    aim = "any plan" if info.target is None else f"{info.objective_kind} ≤ " + show_cost(
        info.target, info.time_unit)  # fmt: skip
    text = Text(f"least {info.tier} {place_text(info.scope)} for {aim}: ", style="bold")
    found = "" if info.least is None or info.impossible else show_amount(info.least, info.time_unit)
    text.append(f"{found}{f' ({AFTER}), ' if found else ''}{least_text(info)}")
    return Group(text, *map(Text, memory_text(info)))


def memory_text(info: LeastInfo) -> list[str]:
    """The device memory required, worded as in the report of an infeasible plan."""
    if info.memory is None:
        return []
    return [file_line(info.tier, info.memory, info.scope)]


def least_text(info: LeastInfo) -> str:
    """How certain the least memory is."""
    if info.impossible:
        return f"proved: nothing up to {show_amount(info.searched, info.time_unit)} is enough"
    if info.least is None:
        return "not found in the time limit"
    if info.proved:
        return "proved to the byte"
    if info.too_small is None:
        return "less may do"
    return f"proved to within {show_amount(info.least - info.too_small, info.time_unit)}"


def draw_machines(info: MachinesInfo) -> RenderableType:
    """The sentence, then the numbers tried."""
    return headed(machines_text(info), machines_grid(info))


def machines_grid(info: MachinesInfo) -> Grid:
    """One row per number of machines."""
    word = {True: "reaches it", False: "proved: misses it", None: "open"}
    head = ("#machines", f"#{info.objective_kind}", "#bound", "status", "target")
    rows: list[Cells] = [
        (
            Cell.count(t.machines),
            *(Cell.cost(value, info.time_unit) for value in (t.objective, t.bound)),
            t.status,
            word[t.reaches],
        )
        for t in info.tries
    ]
    return Grid.of("machines", "machines", "Numbers of machines tried", head, rows)


def machines_text(info: MachinesInfo) -> str:
    """The fewest machines that reach the target, in one sentence."""
    aim = "" if info.target is None else (
        f" for {info.objective_kind} ≤ {show_cost(info.target, info.time_unit)}"
    )  # fmt: skip
    found = "none of those tried" if info.fewest is None else str(info.fewest)
    word = "proved" if info.proved else "not proved: a smaller number was left open"
    return f"fewest machines{aim}: {found} ({word})"


WORDS = {"unfit": "no longer fits"}


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
    return WORDS.get(end.verdict, end.verdict)


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
    """Median and worst regret."""
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
