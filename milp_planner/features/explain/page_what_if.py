"""The sections of other scenarios: the smallest cluster, one plan for several, wrong prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from milp_planner.drawing.charts import WIDTH, Drawing, Scale
from milp_planner.drawing.page import (
    Cell,
    Grid,
    Key,
    Part,
    Section,
    Values,
    columns,
    rows,
    sentence,
)
from milp_planner.drawing.units import show_amount, show_cost, show_gap
from milp_planner.features.explain.draw import (
    least_text,
    machines_grid,
    machines_text,
    robust_grid,
    robust_text,
)
from milp_planner.features.explain.draw_sensitivity import (
    common_text,
    draws_text,
    remarks,
    sensitivity_grid,
)
from milp_planner.features.explain.robust import RobustInfo
from milp_planner.features.explain.sensitivity import SensitivityInfo
from milp_planner.features.explain.smallest import LeastInfo, MachinesInfo

if TYPE_CHECKING:
    from milp_planner.features.explain.robust import RobustInfo
    from milp_planner.features.explain.sensitivity import SensitivityInfo, Side
    from milp_planner.features.explain.smallest import MachinesInfo


def smallest_section(
    least: tuple[LeastInfo, ...] | None, machines: MachinesInfo | None
) -> Section | None:
    """The least memory of each tier, and the fewest machines."""
    if not least and machines is None:
        return None
    values: Values = [
        [
            f"{i.tier.upper()} of each {i.scope}", Cell(show_amount(i.least, i.time_unit), i.least),
            Cell(show_amount(i.too_small, i.time_unit), i.too_small),
            Cell(show_cost(i.objective, i.time_unit), i.objective), least_text(i),
        ]
        for i in least or ()
    ]  # fmt: skip
    head = columns("memory", "#least that does", "#proved too small", "#objective there", "answer")
    grid = Grid("least", "least memory", "Least memory, the others left as they are", head,
                rows(values))  # fmt: skip
    parts = [Part(table=grid)] if values else []
    text = ""
    if machines is not None:
        text = sentence(machines_text(machines))
        parts.append(Part(table=machines_grid(machines)))
    return Section("smallest", "The smallest cluster", text, parts=tuple(parts))


def robust_section(info: RobustInfo) -> Section:
    """The common plan in each scenario, next to that scenario's own optimum."""
    text, table = sentence(robust_text(info)), Part(table=robust_grid(info))
    return Section("robust", "One plan for several scenarios", text, parts=(table,))


def sensitivity_section(info: SensitivityInfo) -> Section:
    """What keeping the plan costs where prices are wrong."""
    grid = sensitivity_grid(info)
    parts = [Part(table=grid)] if grid.rows else []
    drawing = draw_regrets(info)
    if drawing is not None:
        parts.insert(0, Part(drawing.title, drawing.render(), drawing.about))
    common = [] if info.common is None else [common_text(info, info.common)]
    points = tuple(map(sentence, (draws_text(info), *common, *remarks(info))))
    keys = (
        Key("span sure", "regret of keeping the plan: at least"),
        Key("span may", "at most, as far as bounds tell"),
    )
    return Section("sensitivity", "Wrong prices", key=keys if drawing else (), parts=tuple(parts),
                   points=points)  # fmt: skip


_LEFT, _ROW, _NAME = 210, 30.0, 30


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
