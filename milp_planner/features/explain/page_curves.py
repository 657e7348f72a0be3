"""Drawings of curves: bound and incumbent over time, the staircase, the frontier, re-planning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from formulations.settings import TracePoint
from milp_planner.drawing.charts import WIDTH, Drawing, Scale, axes
from milp_planner.drawing.units import show_amount, show_cost

if TYPE_CHECKING:
    from milp_planner.features.explain.frontier import FrontierInfo
    from milp_planner.features.explain.moves import MovesInfo
    from milp_planner.features.explain.replan import ReplanInfo
    from milp_planner.features.explain.staircase import StaircaseInfo

LEFT, TOP, BOTTOM, HEIGHT = 96, 34, 48, 290
#: Plans this many times worse than every point of the frontier are named, not drawn.
_FAR = 3
#: Width and height of a label, about.
_LABEL, _LINE = 90.0, 14.0


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
    low, high = _of_interest(lines, values)
    cut = " Values beyond the edges are cut off." if min(values) < low or max(values) > high else ""
    drawing = Drawing("Best plan and bound over time", f"{_ends(lines, unit)}.{cut}", HEIGHT)
    end = max([seconds, *(p.seconds for p in trace)], default=0.0) or 1.0
    across, up = Scale(0, end, LEFT, WIDTH - 20), Scale(low, high, HEIGHT - BOTTOM, TOP)
    axes(drawing, across, up, ("seconds", "objective"), (lambda v: f"{v:g}", _money(unit)))
    for name, line in lines.items():
        if not line:
            continue
        inside = [(at, min(max(value, low), high)) for at, value in line]
        drawing.line(_stairs([*inside, (end, inside[-1][1])], across, up), f"line {name}")
        for at, value in line[-40:]:
            if low <= value <= high:
                tip = f"{name} {show_cost(value, unit)} at {at:.2f} s"
                drawing.dot(across.at(at), up.at(value), f"mark {name}", tip, 3)
    return drawing


def _of_interest(
    lines: dict[str, list[tuple[float, int]]], values: Sequence[int]
) -> tuple[float, float]:
    """Where the two end and a few times what lies between: first plans may be far beyond."""
    low, high = _padded(min(values), max(values))
    best = min((v for _, v in lines["objective"]), default=None)
    bound = max((v for _, v in lines["bound"]), default=None)
    if best is None:
        return low, high
    between = max(best - (best if bound is None else bound), abs(best) / 50)
    return (
        max(low, (best if bound is None else bound) - 2 * between),
        min(high, best + 3 * between),
    )


def draw_staircase(info: StaircaseInfo) -> Drawing | None:
    """Steps with their bounds, the relaxation as a broken line."""
    known = [s for s in info.steps if s.objective is not None]
    if not known:
        return None
    values = [v for s in known for v in (s.objective, s.bound, s.relaxed) if v is not None]
    about = f"{len(known)} capacities, {sum(s.status == 'optimal' for s in known)} proved"
    drawing = Drawing(
        f"{info.objective_kind} against {info.tier.upper()} of each {info.scope}", about, HEIGHT
    )
    low, high = _padded(min(values), max(values))
    across = Scale(info.steps[0].smallest, info.steps[-1].smallest, LEFT, WIDTH - 40, _base(info))
    up = Scale(low, high, HEIGHT - BOTTOM, TOP)
    names = (f"{info.tier.upper()} of the smallest {info.scope}", info.objective_kind)
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
    worst = max(p.objective or 0 for p in points)
    plans = [p for p in info.plans if p.objective <= _FAR * worst]
    uses = [p.used[0] for p in points if p.used] + [p.used[0] for p in plans]
    values = [p.objective or 0 for p in points] + [p.objective for p in plans]
    about = f"{sum(p.efficient for p in points)} efficient points, {len(info.plans)} plans."
    for plan in (p for p in info.plans if p not in plans):
        about += f" Far above the picture: {plan.label}, "
        about += f"{show_cost(plan.objective, info.time_unit)}."
    tiers = " × ".join(tier.upper() for tier in info.tiers)
    drawing = Drawing(f"Frontier of {tiers} × {info.objective_kind}", about, HEIGHT)
    low, high = _padded(min(values), max(values))
    across = Scale(*_padded(min(uses), max(uses)), LEFT, WIDTH - 40, _base(info))
    up = Scale(low, high, HEIGHT - BOTTOM, TOP)
    names = (f"{info.tiers[0].upper()} used at the fullest place", info.objective_kind)
    axes(drawing, across, up, names, (_bytes(info.time_unit), _money(info.time_unit)))
    most = max(p.used[-1] for p in points if p.used)
    for point in points:
        assert point.used is not None
        tip = ", ".join(
            f"{t.upper()} {show_amount(u, info.time_unit)}"
            for t, u in zip(info.tiers, point.used, strict=True)
        )
        tip += f": {show_cost(point.objective, info.time_unit)}, {point.status}"
        style = "mark objective" if point.efficient else "mark dim"
        size = 3.5 + 4 * point.used[1] / most if len(point.used) > 1 and most else 4.5
        drawing.dot(across.at(point.used[0]), up.at(point.objective or 0), style, tip, size)
    taken: list[tuple[float, float]] = []
    for plan in plans:
        x, y = across.at(plan.used[0]), up.at(plan.objective)
        tip = f"{plan.label}: {show_cost(plan.objective, info.time_unit)}"
        drawing.rect(x - 5, y - 5, 10, 10, "plan", tip)
        taken.append(_free(taken, x, y - 9))
        drawing.text(*taken[-1], plan.label, "end" if x > WIDTH - 110 else "start")
    return drawing


def _free(taken: Sequence[tuple[float, float]], x: float, y: float) -> tuple[float, float]:
    """Where a label fits: above others that are near."""
    while any(abs(x - left) < _LABEL and abs(y - high) < _LINE for left, high in taken):
        y -= _LINE
    return x, y


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


def draw_moves(info: MovesInfo) -> Drawing | None:
    """The objective against what has travelled, move after move."""
    if len(info.points) < 2:
        return None
    values = [point.objective for point in info.points]
    about = f"{info.points[-1].moves:,} moves; marks after {', '.join(map(str, _told(info)))}"
    drawing = Drawing(f"{info.objective_kind} on the way from today's plan", about, HEIGHT)
    across = Scale(0, max(1, info.points[-1].bytes), LEFT, WIDTH - 40, 2)
    up = Scale(*_padded(min(values), max(values)), HEIGHT - BOTTOM, TOP)
    names = ("bytes that have travelled", info.objective_kind)
    axes(drawing, across, up, names, (_bytes(info.time_unit), _money(info.time_unit)))
    drawing.line(
        _stairs([(p.bytes, p.objective) for p in info.points], across, up), "line objective"
    )
    for point in info.told:
        x, y = across.at(point.bytes), up.at(point.objective)
        size = show_amount(point.bytes, info.time_unit)
        cost = show_cost(point.objective, info.time_unit)
        drawing.dot(x, y, "mark objective", f"after {point.moves:,} moves, {size}: {cost}")
        drawing.text(x, y - 9, f"{point.moves:,}", "end" if x > WIDTH - 90 else "middle")
    return drawing


def _told(info: MovesInfo) -> list[int]:
    return [point.moves for point in info.told]


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
    """A little air; from 0 where that is not far; never so narrow that ticks read alike."""
    span = max(high - low, abs(high) * 0.02) or 1.0
    air = 0.08 * span + (span - (high - low)) / 2
    return 0.0 if 0 <= low < 0.35 * high else low - air, high + air


def _ends(lines: dict[str, list[tuple[float, int]]], unit: str) -> str:
    return ", ".join(f"{n} {show_cost(line[-1][1], unit)}" for n, line in lines.items() if line)


def _base(info: StaircaseInfo | FrontierInfo) -> int:
    """Bytes have binary ticks; the literature's plain integers decimal ones."""
    return 2 if info.time_unit == "ps" else 10


def _money(unit: str) -> Callable[[float], str]:
    return lambda value: show_cost(round(value), unit)


def _bytes(unit: str) -> Callable[[float], str]:
    return lambda value: show_amount(round(value), unit)
