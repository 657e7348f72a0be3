"""Drawings of curves: bound and incumbent over time, the staircase, the frontier, re-planning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from formulations.settings import TracePoint
from milp_planner.report.html.svg import WIDTH, Drawing, Scale, axes
from milp_planner.report.units import show_amount, show_cost

if TYPE_CHECKING:
    from milp_planner.explain.frontier import FrontierInfo
    from milp_planner.explain.replan import ReplanInfo
    from milp_planner.explain.staircase import StaircaseInfo

LEFT, TOP, BOTTOM, HEIGHT = 96, 34, 48, 290


def draw_trace(trace: Sequence[TracePoint], seconds: float, unit: str) -> Drawing | None:
    """Incumbent and bound against wall clock; None when neither was recorded."""
    lines: dict[str, list[tuple[float, int]]] = {"objective": [], "bound": []}
    for point in trace:
        for name, value in (("objective", point.objective), ("bound", point.bound)):
            if value is not None:
                lines[name].append((point.seconds, value))
    values = [v for line in lines.values() for _, v in line]
    if not values:
        return None
    drawing = Drawing("Best plan and bound over time", _ends(lines, unit), HEIGHT)
    low, high = _padded(min(values), max(values))
    end = max([seconds, *(p.seconds for p in trace)], default=0.0) or 1.0
    across, up = Scale(0, end, LEFT, WIDTH - 20), Scale(low, high, HEIGHT - BOTTOM, TOP)
    axes(drawing, across, up, ("seconds", "objective"), (lambda v: f"{v:g}", _money(unit)))
    for name, line in lines.items():
        if line:
            drawing.line(_stairs([*line, (end, line[-1][1])], across, up), f"line {name}")
            for at, value in line[-40:]:
                tip = f"{name} {show_cost(value, unit)} at {at:.2f} s"
                drawing.dot(across.at(at), up.at(value), f"mark {name}", tip, 3)
    return drawing


def draw_staircase(info: StaircaseInfo) -> Drawing | None:
    """Steps with their bounds, the relaxation as a broken line."""
    known = [s for s in info.steps if s.objective is not None]
    if not known:
        return None
    values = [v for s in known for v in (s.objective, s.bound, s.relaxed) if v is not None]
    about = f"{len(known)} capacities, {sum(s.status == 'optimal' for s in known)} proved"
    drawing = Drawing(
        f"{info.objective_kind} against {info.tier} of each {info.scope}", about, HEIGHT
    )
    low, high = _padded(min(values), max(values))
    across = Scale(info.steps[0].smallest, info.steps[-1].smallest, LEFT, WIDTH - 40, _base(info))
    up = Scale(low, high, HEIGHT - BOTTOM, TOP)
    names = (f"{info.tier} of the smallest {info.scope}", info.objective_kind)
    axes(drawing, across, up, names, (_bytes(info.time_unit), _money(info.time_unit)))
    relaxed = [(s.smallest, s.relaxed) for s in info.steps if s.relaxed is not None]
    drawing.line([(across.at(x), up.at(y)) for x, y in relaxed], "line relaxed")
    steps = [(s.smallest, s.objective) for s in known if s.objective is not None]
    drawing.line(_stairs(steps, across, up), "line objective")
    for step in known:
        assert step.objective is not None
        x = across.at(step.smallest)
        if step.bound is not None and step.bound < step.objective:
            drawing.line([(x, up.at(step.objective)), (x, up.at(max(low, step.bound)))], "gap")
        tip = (
            f"{show_amount(step.smallest, info.time_unit)}: "
            f"{show_cost(step.objective, info.time_unit)}, {step.status}"
        )
        style = "mark objective" if step.status == "optimal" else "mark open"
        drawing.dot(x, up.at(step.objective), style, tip)
    return drawing


def draw_frontier(info: FrontierInfo) -> Drawing | None:
    """First tier against the objective; the second tier is the size of a mark."""
    points = [p for p in info.points if p.used is not None and p.objective is not None]
    if not points:
        return None
    uses = [p.used[0] for p in points if p.used] + [p.used[0] for p in info.plans]
    values = [p.objective or 0 for p in points] + [p.objective for p in info.plans]
    about = f"{sum(p.efficient for p in points)} efficient points, {len(info.plans)} plans"
    drawing = Drawing(
        f"Frontier of {' × '.join(info.tiers)} × {info.objective_kind}", about, HEIGHT
    )
    low, high = _padded(min(values), max(values))
    across = Scale(*_padded(min(uses), max(uses)), LEFT, WIDTH - 40, _base(info))
    up = Scale(low, high, HEIGHT - BOTTOM, TOP)
    names = (f"{info.tiers[0]} used at the fullest place", info.objective_kind)
    axes(drawing, across, up, names, (_bytes(info.time_unit), _money(info.time_unit)))
    for point in points:
        assert point.used is not None
        tip = ", ".join(
            f"{t} {show_amount(u, info.time_unit)}"
            for t, u in zip(info.tiers, point.used, strict=True)
        )
        tip += f": {show_cost(point.objective, info.time_unit)}, {point.status}"
        style = "mark objective" if point.efficient else "mark dim"
        drawing.dot(across.at(point.used[0]), up.at(point.objective or 0), style, tip)
    for plan in info.plans:
        x, y = across.at(plan.used[0]), up.at(plan.objective)
        tip = f"{plan.label}: {show_cost(plan.objective, info.time_unit)}"
        drawing.rect(x - 5, y - 5, 10, 10, "plan", tip)
        drawing.text(x + 9, y - 7, plan.label, "start", "label")
    return drawing


def draw_replan(info: ReplanInfo) -> Drawing | None:
    """The objective against what may move."""
    known = [s for s in info.steps if s.objective is not None]
    if not known:
        return None
    values = [s.objective or 0 for s in known]
    drawing = Drawing(
        f"{info.objective_kind} against {info.by} that may move", f"{len(known)} limits", HEIGHT
    )
    low, high = _padded(min(values), max(values))
    across = Scale(info.steps[0].limit, info.steps[-1].limit, LEFT, WIDTH - 40)
    up = Scale(low, high, HEIGHT - BOTTOM, TOP)
    show = _bytes(info.time_unit) if info.by == "bytes" else (lambda v: f"{v:g}")
    names = (f"{info.by} that may move", info.objective_kind)
    axes(drawing, across, up, names, (show, _money(info.time_unit)))
    drawing.line(
        _stairs([(s.limit, s.objective or 0) for s in known], across, up), "line objective"
    )
    for step in known:
        style = "mark objective" if step.status == "optimal" else "mark open"
        tip = f"{step.moved_tables} tables move: {show_cost(step.objective, info.time_unit)}"
        drawing.dot(across.at(step.limit), up.at(step.objective or 0), style, tip)
    return drawing


def _stairs(
    points: Sequence[tuple[float, float]], across: Scale, up: Scale
) -> list[tuple[float, float]]:
    """Horizontal, then vertical, between points."""
    path: list[tuple[float, float]] = []
    for x, y in points:
        if path:
            path.append((across.at(x), path[-1][1]))
        path.append((across.at(x), up.at(y)))
    return path


def _padded(low: float, high: float) -> tuple[float, float]:
    """A little air; from 0 where that is not far."""
    span = high - low or abs(high) * 0.1 or 1.0
    bottom = 0.0 if 0 <= low < 0.35 * high else low - 0.08 * span
    return bottom, high + 0.08 * span


def _ends(lines: dict[str, list[tuple[float, int]]], unit: str) -> str:
    return ", ".join(f"{n} {show_cost(line[-1][1], unit)}" for n, line in lines.items() if line)


def _base(info: StaircaseInfo | FrontierInfo) -> int:
    """Bytes have binary ticks; the literature's plain integers decimal ones."""
    return 2 if info.time_unit == "ps" else 10


def _money(unit: str) -> Callable[[float], str]:
    return lambda value: show_cost(round(value), unit, digits=3)


def _bytes(unit: str) -> Callable[[float], str]:
    return lambda value: show_amount(round(value), unit)
