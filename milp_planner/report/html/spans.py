"""Drawings that compare scenarios: numbers of machines, a common plan, regrets of wrong prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from milp_planner.report.html.svg import WIDTH, Drawing, Scale, axes
from milp_planner.report.units import shorten, show_cost, show_gap

if TYPE_CHECKING:
    from milp_planner.explain.price_search import Side
    from milp_planner.explain.robust import RobustInfo
    from milp_planner.explain.sensitivity import SensitivityInfo
    from milp_planner.explain.smallest import MachinesInfo

_LEFT, _ROW, _NAME = 210, 30.0, 30


def draw_machines(info: MachinesInfo) -> Drawing | None:
    """Best plan and bound against the number of machines, the target as a line."""
    known = [each for each in info.tries if each.objective is not None]
    if len(known) < 2:
        return None
    values = [v for t in known for v in (t.objective, t.bound, info.target) if v is not None]
    foot = 190.0
    drawing = Drawing(f"{info.objective_kind} against machines", f"{len(known)} with a plan.",
                      foot + 44)  # fmt: skip
    low, high = info.tries[0].machines, info.tries[-1].machines
    across = Scale(low - 0.5, high + 0.5, 96, WIDTH - 20)
    up = Scale(0, max(values) * 1.08, foot, 30)
    axes(drawing, across, up, ("machines", info.objective_kind),
         (lambda v: f"{v:g}" if v == int(v) else "",
          lambda v: show_cost(round(v), info.time_unit, digits=3)))  # fmt: skip
    if info.target is not None:
        y = up.at(info.target)
        drawing.line([(across.start, y), (across.stop, y)], "line relaxed")
        drawing.text(across.stop, y - 6, "target", "end", "label")
    for each in known:
        assert each.objective is not None
        x = across.at(each.machines)
        tip = f"{each.machines} machines: {show_cost(each.objective, info.time_unit)}"
        if each.bound is not None:
            drawing.line([(x, up.at(each.bound)), (x, up.at(each.objective))], "gap")
            drawing.dot(x, up.at(each.bound), "mark bound", f"{tip}, bound", 3.5)
        drawing.dot(x, up.at(each.objective), "mark objective", tip)
    return drawing


def draw_robust(info: RobustInfo) -> Drawing | None:
    """A row a scenario: its own best plan, and what the common plan costs there."""
    known = [row for row in info.scenarios if row.value is not None]
    if not known:
        return None
    foot = 8 + _ROW * len(known)
    regrets = [row.regret for row in known if row.regret is not None]
    about = f"Largest regret: {show_gap(max(regrets))}." if regrets else "No regret is known."
    drawing = Drawing("The common plan in each scenario", about, foot + 44)
    most = max(v for row in known for v in (row.value, row.own) if v is not None)
    across = Scale(0, most * 1.04, _LEFT, WIDTH - 110)
    _ticks(drawing, across, foot, info.time_unit)
    drawing.text(across.stop, foot + 38, info.objective_kind, "end", "label")
    for index, row in enumerate(known):
        assert row.value is not None
        y = 8 + index * _ROW + _ROW / 2
        drawing.text(_LEFT - 10, y + 4, shorten(row.name, _NAME), "end")
        drawing.line([(_LEFT, y), (across.stop, y)], "grid")
        common = f"{row.name}: common plan {show_cost(row.value, info.time_unit)}"
        if row.own is not None:
            own = f"{row.name}: its own best {show_cost(row.own, info.time_unit)}"
            drawing.line([(across.at(row.own), y), (across.at(row.value), y)], "gap")
            drawing.dot(across.at(row.own), y, "mark objective", own, 5.5)
        x = across.at(row.value)
        drawing.rect(x - 4.5, y - 4.5, 9, 9, "mark common", common)
        if row.regret is not None:
            drawing.text(WIDTH, y + 4, f"{100 * row.regret:+.2g}%", "end", "strong")
    return drawing


def draw_regrets(info: SensitivityInfo) -> Drawing | None:
    """A row a parameter: regret where it is lower (to the left) and higher (to the right)."""
    sides = {one.parameter.name: (one.lower, one.higher) for one in info.singles
             if one.lower or one.higher}  # fmt: skip
    known = [s.end.regret for pair in sides.values() for s in pair if s and s.end.regret]
    if not known:
        return None
    most = max(least if top is None else top for least, top in known)
    if most <= 0:
        return None
    foot = 30 + _ROW * len(sides)
    about = f"The largest is at most {show_gap(most)}, as far as bounds tell."
    drawing = Drawing("Regret of keeping the plan, one parameter at a time", about, foot + 44)
    middle, reach = (_LEFT + WIDTH - 20) / 2, (WIDTH - 20 - _LEFT) / 2
    drawing.text(middle - 10, 18, "lower", "end", "label")
    drawing.text(middle + 10, 18, "higher", "start", "label")
    scale = Scale(0, most, 0, reach)
    for tick in scale.ticks(3):
        for x in {middle - scale.at(tick), middle + scale.at(tick)}:
            drawing.line([(x, 26), (x, foot)], "grid")
            drawing.text(x, foot + 18, show_gap(tick), "middle")
    for index, (name, pair) in enumerate(sides.items()):
        y = 30 + index * _ROW
        drawing.text(_LEFT - 10, y + 18, name, "end")
        for sign, side in zip((-1, 1), pair, strict=True):
            _regret(drawing, side, scale, middle, sign, y, name)
    drawing.line([(middle, 26), (middle, foot)], "axis")
    drawing.text(WIDTH - 20, foot + 38, "(kept − best) / best", "end", "label")
    return drawing


def _regret(
    drawing: Drawing, side: Side | None, scale: Scale, middle: float, sign: int, y: float, name: str
) -> None:
    if side is None or side.end.regret is None:
        return
    least, most = side.end.regret
    words = show_gap(least) if most == least else f"{show_gap(least)} to {show_gap(most)}"
    tip = f"{name} {'lower' if sign < 0 else 'higher'}: regret {words}"
    for amount, style in ((least if most is None else most, "span may"), (least, "span sure")):
        wide = scale.at(amount)
        drawing.rect(middle - wide if sign < 0 else middle, y + 5, wide, _ROW - 10, style, tip)


def _ticks(drawing: Drawing, across: Scale, foot: float, unit: str) -> None:
    for tick in across.ticks(5):
        x = across.at(tick)
        drawing.line([(x, 4), (x, foot)], "grid")
        drawing.text(x, foot + 18, show_cost(round(tick), unit, digits=3), "middle")
