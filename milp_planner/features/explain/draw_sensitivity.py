"""What wrong prices do to a plan, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.page import Cell, Grid, draw_grid
from milp_planner.drawing.units import UNKNOWN, show_cost, show_gap

if TYPE_CHECKING:
    from milp_planner.features.explain.sensitivity import SensitivityInfo, Side, Single
    from milp_planner.features.explain.trial import Summary

WORDS = {"unfit": "no longer fits"}


def draw_sensitivity(info: SensitivityInfo) -> RenderableType:
    """A row per parameter, then what all of them do at once."""
    title = Text("sensitivity: prices within their spread, solved again", style="bold")
    grid = sensitivity_grid(info)
    table = [draw_grid(grid, {"lower": 16, "higher": 16})] if grid.rows else []
    notes = [Text(text, style="dim") for text in remarks(info)]
    return Group(title, *table, Text(draws_text(info)), *notes)


def sensitivity_grid(info: SensitivityInfo) -> Grid:
    """A row per parameter that some price depends on."""
    return Grid.of(
        "sensitivity-rows", "parameters", "One parameter at a time",
        ("parameter", "spread", "lower", "higher", "#changes at", "#regret up to"),
        [
            [
                one.parameter.name, Cell(spread_text(one), one.parameter.spread),
                end_text(one.lower), end_text(one.higher), change_text(one), worst_text(one),
            ]
            for one in info.singles if one.lower or one.higher
        ],
    )  # fmt: skip


def spread_text(one: Single) -> str:
    """How wrong a parameter may be, and whether that was measured."""
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


def change_text(one: Single) -> str:
    """Where the plan first changes, on either side: proved the same to, changed at."""
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
    few = "" if made == info.asked else f" of {info.asked} asked for"
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
    """What the figures rest on."""
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
        found.append("the plan is not proved best at its own prices, so regret has that gap in it")
    if info.better is not None:
        cost = show_cost(info.better, info.time_unit)
        found.append(
            f"a better plan at its own prices turned up: {cost}; plan again with more time"
        )
    return found


def interval_text(least: float | None, most: float | None) -> str:
    """A regret, or the interval it lies in."""
    if least is None or least == most:
        return show_gap(least)
    if most is None:
        return f"{show_gap(least)} or more"
    return f"{show_gap(least)} to {show_gap(most)}"


def _most(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return None if len(known) < len(values) else max(known)
