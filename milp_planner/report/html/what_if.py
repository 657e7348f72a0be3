"""The sections of other scenarios: the smallest cluster, one plan for several, wrong prices."""

from __future__ import annotations

from milp_planner.explain.robust import RobustInfo
from milp_planner.explain.sensitivity import SensitivityInfo
from milp_planner.explain.smallest import LeastInfo, MachinesInfo
from milp_planner.report.html.parts import (
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
from milp_planner.report.html.spans import draw_machines, draw_regrets, draw_robust
from milp_planner.report.terminal.explain import least_text, machines_text, robust_text
from milp_planner.report.terminal.sensitivity import (
    change_text,
    common_text,
    draws_text,
    end_text,
    remarks,
    spread_text,
    worst_text,
)
from milp_planner.report.units import show_amount, show_cost, show_gap


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
        drawing = draw_machines(machines)
        if drawing is not None:
            parts.append(Part(drawing.title, drawing.render(), drawing.about))
        parts.append(Part(table=_tries(machines)))
    keys = (Key("mark objective", "best plan known"), Key("mark bound", "proved bound"))
    return Section("smallest", "The smallest cluster", text, keys if machines else (), tuple(parts))


def _tries(info: MachinesInfo) -> Grid:
    word = {True: "reaches it", False: "proved: misses it", None: "open"}
    values: Values = [
        [
            Cell(str(each.machines), each.machines),
            Cell(show_cost(each.objective, info.time_unit), each.objective),
            Cell(show_cost(each.bound, info.time_unit), each.bound), each.status,
            word[each.reaches],
        ]
        for each in info.tries
    ]  # fmt: skip
    head = columns("#machines", f"#{info.objective_kind}", "#bound", "status", "target")
    return Grid("machines", "machines", "Numbers of machines tried", head, rows(values))


def robust_section(info: RobustInfo) -> Section:
    """The common plan in each scenario, beside that scenario's own optimum."""
    unit = info.time_unit
    values: Values = [
        [
            row.name, Cell(str(row.weight), row.weight), Cell(show_cost(row.own, unit), row.own),
            Cell(show_cost(row.own_bound, unit), row.own_bound),
            Cell(show_cost(row.value, unit), row.value), Cell(show_gap(row.regret), row.regret),
        ]
        for row in info.scenarios
    ]  # fmt: skip
    head = columns("scenario", "#weight", "#its own best", "#its bound", "#common plan", "#regret")
    grid = Grid("robust-rows", "scenarios", "Every scenario", head, rows(values))
    parts = [Part(table=grid)]
    drawing = draw_robust(info)
    if drawing is not None:
        parts.insert(0, Part("", drawing.render(), drawing.about))
    keys = (
        Key("mark objective", "best plan of the scenario alone"),
        Key("mark common", "common plan"),
    )
    return Section("robust", "One plan for several scenarios", sentence(robust_text(info)),
                   keys if drawing else (), tuple(parts))  # fmt: skip


def sensitivity_section(info: SensitivityInfo) -> Section:
    """What keeping the plan costs where prices are wrong."""
    priced = [one for one in info.singles if one.lower or one.higher]
    values: Values = [
        [
            one.parameter.name, Cell(spread_text(one), one.parameter.spread), end_text(one.lower),
            end_text(one.higher), change_text(one), worst_text(one),
        ]
        for one in priced
    ]  # fmt: skip
    head = columns("parameter", "#spread", "lower", "higher", "changes at", "regret up to")
    grid = Grid("sensitivity-rows", "parameters", "One parameter at a time", head, rows(values))
    parts = [Part(table=grid)] if values else []
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
