"""Drawings of curves: bound and incumbent over time, the staircase, moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from formulations.settings import TracePoint
from milp_planner.drawing.charts import Drawing, Line, Mark, Scale, chart, padded
from milp_planner.drawing.units import show_amount, show_cost

if TYPE_CHECKING:
    from milp_planner.features.explain.memory import StaircaseInfo
    from milp_planner.features.moves.today import MovesInfo

#: Only this many of the last points of a trace are marked.
_DOTS = 40


def draw_trace(trace: Sequence[TracePoint], seconds: float, unit: str) -> Drawing | None:
    """Incumbent and bound against wall clock; None when neither was recorded."""
    known: dict[str, list[tuple[float, int]]] = {"objective": [], "bound": []}
    for point in trace:
        for name, value in (("objective", point.objective), ("bound", point.bound)):
            if value is not None:
                known[name].append((point.seconds, value))
    values = [v for line in known.values() for _, v in line]
    if not values:
        return None
    low, high = _of_interest(known, values)
    ends = ", ".join(f"{n} {show_cost(line[-1][1], unit)}" for n, line in known.items() if line)
    cut = " Values beyond the edges are cut off." if min(values) < low or max(values) > high else ""
    end = max([seconds, *(p.seconds for p in trace)], default=0.0) or 1.0
    lines = [
        Line("", [(at, min(max(value, low), high)) for at, value in line], style=f"line {name}")
        for name, line in known.items()
    ]
    marks = [
        Mark(at, v, f"mark {name}", f"{name} {show_cost(v, unit)} at {at:.2f} s", 3)
        for name, line in known.items() for at, v in line[-_DOTS:] if low <= v <= high
    ]  # fmt: skip
    return chart(
        "Best plan and bound over time", f"{ends}.{cut}", lines, (Scale(0, end), Scale(low, high)),
        ("seconds", "objective"), (lambda v: f"{v:g}", _money(unit)), marks,
    )  # fmt: skip


def _of_interest(
    known: dict[str, list[tuple[float, int]]], values: Sequence[int]
) -> tuple[float, float]:
    """The range to show: the final gap and a few times its width, as first plans may be far off."""
    low, high = padded(min(values), max(values))
    best = min((v for _, v in known["objective"]), default=None)
    bound = max((v for _, v in known["bound"]), default=None)
    if best is None:
        return low, high
    least = best if bound is None else bound
    between = max(best - least, abs(best) / 50)
    return max(low, least - 2 * between), min(high, best + 3 * between)


def draw_staircase(info: StaircaseInfo) -> Drawing | None:
    """Steps with their bounds, and the relaxation as a dashed line."""
    unit, known = info.time_unit, [s for s in info.steps if s.objective is not None]
    if not known:
        return None
    values = [v for s in known for v in (s.objective, s.bound, s.relaxed) if v is not None]
    relaxed = [(s.smallest, s.relaxed) for s in info.steps if s.relaxed is not None]
    marks = [
        Mark(s.smallest, s.objective or 0,
             "mark objective" if s.status == "optimal" else "mark open",
             f"{show_amount(s.smallest, unit)}: {show_cost(s.objective, unit)}, {s.status}",
             low=s.bound)
        for s in known
    ]  # fmt: skip
    return chart(
        f"{info.objective_kind} against {info.tier.upper()} of each {info.scope}",
        f"{len(known)} capacities, {sum(s.status == 'optimal' for s in known)} proved",
        [Line("", relaxed, style="line relaxed", straight=True),
         Line("", [(mark.x, mark.y) for mark in marks], style="line objective")],
        (_memory(info.steps[0].smallest, info.steps[-1].smallest, unit),
         Scale(*padded(min(values), max(values)))),
        (f"{info.tier.upper()} of the smallest {info.scope}", info.objective_kind),
        (_bytes(unit), _money(unit)), marks,
    )  # fmt: skip


def draw_moves(info: MovesInfo) -> Drawing | None:
    """The objective against the bytes transferred, move after move."""
    if len(info.points) < 2:
        return None
    unit, values = info.time_unit, [point.objective for point in info.points]
    marks = [
        Mark(p.bytes, p.objective, "mark objective",
             f"after {p.moves:,} moves, {show_amount(p.bytes, unit)}: "
             f"{show_cost(p.objective, unit)}")
        for p in info.told
    ]  # fmt: skip
    counts = ", ".join(f"{point.moves:,}" for point in info.told)
    return chart(
        f"{info.objective_kind} on the way from today's plan", f"marks after {counts} moves",
        [Line("", [(p.bytes, p.objective) for p in info.points], style="line objective")],
        (_memory(0, max(1, info.points[-1].bytes), unit),
         Scale(*padded(min(values), max(values)))),
        ("bytes that have travelled", info.objective_kind), (_bytes(unit), _money(unit)), marks,
    )  # fmt: skip


def _memory(low: float, high: float, unit: str) -> Scale:
    """Bytes get binary ticks; the plain integers of literature instances get decimal ones."""
    return Scale(low, high, base=2 if unit == "ps" else 10)


def _money(unit: str) -> Callable[[float], str]:
    return lambda value: show_cost(round(value), unit)


def _bytes(unit: str) -> Callable[[float], str]:
    return lambda value: show_amount(round(value), unit)
