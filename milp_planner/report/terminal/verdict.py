"""The verdict strip on a terminal."""

from __future__ import annotations

from rich.panel import Panel
from rich.text import Text

from milp_planner.report.units import (
    memory_name,
    show_amount,
    show_cost,
    show_gap,
    show_seconds,
    show_share,
)
from milp_planner.report.verdict import MEANING, STOPPED, Tightest, VerdictInfo

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
    return Panel(body, title=title or None, title_align="left", border_style=colour, width=100)


def _headline(info: VerdictInfo, colour: str) -> Text:
    text = Text(info.status.upper(), style=f"bold {colour}")
    if info.objective is not None:
        text.append(f"   {info.objective_kind} {_cost(info, info.objective)}", "bold")
        text.append(f"   bound {_cost(info, info.bound)}")
        text.append(f"   gap {show_gap(info.gap)}")
    text.append(f"   {info.formulation}, {show_seconds(info.seconds)}", "default")
    return text


def _proof(info: VerdictInfo) -> list[str]:
    """What is proved (the bound) and what is certified (the certified bound), in words."""
    lines = []
    if STOPPED[info.stopped_by]:
        lines.append(STOPPED[info.stopped_by])
    if info.bound_method is not None:
        how = "in integers" if info.bound_exact else "in floating point"
        what = f"no plan is below {_cost(info, info.bound)}"
        if info.status == "infeasible":
            what = "no plan exists"
        elif info.proved:
            what = "no plan is better"
        lines.append(f"proved: {what} ({info.bound_method}, {how})")
    if info.certified_infeasible:
        lines.append("certified: no plan exists; verify re-derives it")
    elif info.status == "infeasible":
        lines.append("not certified: the LP alone has plans, so the proof is the solver's word")
    if info.certified_bound is not None:
        share = _share(info)
        bound = _cost(info, info.certified_bound)
        lines.append(f"certified: no plan is below {bound}{share}; verify re-derives it")
    return lines


def _cost(info: VerdictInfo, value: int | None) -> str:
    return show_cost(value, info.time_unit, digits=6)


def _share(info: VerdictInfo) -> str:
    """How far the certified bound reaches towards the objective."""
    if info.certified_bound is None or info.objective is None or info.objective <= 0:
        return ""
    return f" ({100 * info.certified_bound / info.objective:.2f}% of the objective)"


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
