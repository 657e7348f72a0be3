"""The verdict strip on a terminal."""

from __future__ import annotations

from rich.panel import Panel
from rich.text import Text

from milp_planner.drawing.units import (
    memory_name,
    show_amount,
    show_cost,
    show_gap,
    show_seconds,
    show_share,
)
from milp_planner.features.plan.verdict import MEANING, STOPPED, Tightest, VerdictInfo

COLOUR = {"optimal": "green", "feasible": "yellow", "infeasible": "red", "unknown": "red"}


def draw_verdict(info: VerdictInfo, title: str = "") -> Panel:
    """A strip of a few lines: status, objective, bound, gap, tightest places, seconds."""
    colour = COLOUR[info.status]
    lines = [_headline(info, colour), *(_line(text) for text in _proof(info))]
    lines += [_tightest(place, info.time_unit) for place in info.fullest]
    if info.note:
        lines.append(_line(info.note, "dim"))
    if info.objective is not None:
        lines.append(_line(f"{info.objective_kind}: {MEANING[info.objective_kind]}", "dim"))
    body = Text("\n").join(lines)
    return Panel(
        body,
        title=Text(title) if title else None,
        title_align="left",
        border_style=colour,
        width=100,
    )


def _headline(info: VerdictInfo, colour: str) -> Text:
    word, _, rest = info.standing.partition(",")
    text = Text(word.upper(), style=f"bold {colour}").append(f",{rest}" if rest else "")
    if info.objective is not None:
        text.append(f"\n{info.objective_kind} {_cost(info, info.objective)}", "bold")
        text.append(f"   certified gap {show_gap(info.certified_gap)}")
        text.append(f"   gap {show_gap(info.gap)}   bound {_cost(info, info.bound)}")
    text.append(f"   {info.formulation}, {show_seconds(info.seconds)}", "default")
    return text


def _proof(info: VerdictInfo) -> list[str]:
    """What is certified, then what a solver proved beyond that, in words."""
    lines = []
    if STOPPED[info.stopped_by]:
        lines.append(STOPPED[info.stopped_by])
    if info.certified_infeasible:
        lines.append("certified: no plan exists; verify re-derives it")
    elif info.certified_optimal:
        lines.append("certified: no plan is better; verify re-derives it")
    elif info.certified_bound is not None:
        bound = _cost(info, info.certified_bound)
        lines.append(f"certified{_within(info)}: no plan is below {bound}; verify re-derives it")
    if info.bound_method is not None and not info.all_certified:
        how = "in integers" if info.bound_exact else "in floating point"
        what = f"no plan is below {_cost(info, info.bound)}"
        if info.status == "infeasible":
            what = "no plan exists"
        elif info.proved:
            what = "no plan is better"
        lines.append(f"proved: {what} ({info.bound_method}, {how})")
    if info.status == "infeasible" and not info.certified_infeasible:
        lines.append("not certified: no proof tree closed, so it is the solver's word")
    return lines


def _cost(info: VerdictInfo, value: int | None) -> str:
    return show_cost(value, info.time_unit, digits=6)


def _within(info: VerdictInfo) -> str:
    """How far the certified bound is from the objective."""
    gap = info.certified_gap
    return "" if gap is None else f" to within {show_gap(gap)}"


def _tightest(place: Tightest, unit: str) -> Text:
    at = "the cluster" if place.scope == "cluster" else f"{place.scope} {place.place}"
    text = Text(f"tightest {memory_name(place.resource)}: {at}, ")
    text.append(f"{show_amount(place.used, unit)} of {show_amount(place.capacity, unit)}")
    text.append(f" ({show_share(place.used, place.capacity)}), ")
    over = place.headroom < 0
    text.append(
        f"{show_amount(abs(place.headroom), unit)} {'too much' if over else 'free'}",
        "bold red" if over else "default",
    )
    return text


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style)
