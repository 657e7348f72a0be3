"""The section of an infeasible plan: what there is, what it takes, what is in conflict."""

from __future__ import annotations

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
from milp_planner.report.html.svg import WIDTH, Drawing, Scale
from milp_planner.report.shortage import ShortageInfo
from milp_planner.report.terminal.shortage import advice, certainty
from milp_planner.report.units import show_amount

_LEFT, _RIGHT, _ROW = 140, 250, 30.0


def shortage_section(info: ShortageInfo | None, unit: str) -> Section | None:
    """Why nothing fits, and the least that would."""
    if info is None:
        return None
    values: Values = [
        [
            t.resource.upper(), t.scope, Cell(show_amount(t.smallest, unit), t.smallest),
            Cell(show_amount(t.needed, unit), t.needed),
            Cell(show_amount(t.short_by, unit), t.short_by), certainty(t),
        ]
        for t in info.tiers
    ]  # fmt: skip
    head = columns("memory", "of each", "#there now", "#needed everywhere", "#short by", "answer")
    grid = Grid("tiers", "memory", "Each memory, the others left as they are", head, rows(values))
    drawing = draw_shortage(info, unit)
    parts = [Part(table=grid)]
    if drawing is not None:
        parts.insert(0, Part(drawing.title, drawing.render(), drawing.about))
    keys = (Key("m-HBM_ONLY", "there now"), Key("lacks", "lacking"))
    lines = tuple(sentence(line) for line in advice(info, unit))
    return Section("why-not", "Why nothing fits", key=keys if drawing else (), parts=tuple(parts),
                   points=lines)  # fmt: skip


def draw_shortage(info: ShortageInfo, unit: str) -> Drawing | None:
    """A bar a memory: what its smallest place has, and what that lacks."""
    known = [tier for tier in info.tiers if tier.needed is not None and tier.helps]
    if not known:
        return None
    about = " ".join(
        f"{t.resource.upper()} of each {t.scope}: {show_amount(t.smallest, unit)} there, "
        f"{show_amount(t.needed, unit)} needed."
        for t in known
    )
    drawing = Drawing("Any one of these would do", about, _ROW * len(known) + 8)
    for index, tier in enumerate(known):
        assert tier.needed is not None
        across = Scale(0, max(tier.needed, tier.smallest, 1), _LEFT, WIDTH - _RIGHT)
        y, there, needed = 4 + index * _ROW, across.at(tier.smallest), across.at(tier.needed)
        now, short = show_amount(tier.smallest, unit), show_amount(tier.short_by, unit)
        drawing.text(_LEFT - 8, y + 17, f"{tier.resource.upper()} of each {tier.scope}", "end")
        drawing.rect(_LEFT, y, there - _LEFT, _ROW - 7, "m-HBM_ONLY", now)
        drawing.rect(there, y, needed - there, _ROW - 7, "lacks", short)
        words = f"{now} of {show_amount(tier.needed, unit)} needed"
        drawing.text(WIDTH, y + 17, words, "end", "strong")
    return drawing
