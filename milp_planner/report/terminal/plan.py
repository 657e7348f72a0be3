"""A whole report on a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType

from milp_planner.explain.answers import Answers
from milp_planner.report.info import ReportInfo
from milp_planner.report.terminal.explain import draw_answers
from milp_planner.report.terminal.memory import draw_memory
from milp_planner.report.terminal.modes import draw_modes
from milp_planner.report.terminal.shortage import draw_shortage
from milp_planner.report.terminal.timeline import draw_timeline
from milp_planner.report.terminal.verdict import draw_verdict


def draw_plan(info: ReportInfo, width: int) -> RenderableType:
    """Verdict, why nothing fits, memory, time, modes and answers, as far as there are any."""
    unit = info.verdict.time_unit
    parts: list[RenderableType] = [draw_verdict(info.verdict, f"{info.model} on {info.cluster}")]
    if info.shortage is not None:
        parts.append(draw_shortage(info.shortage, unit))
    if info.memory is not None and info.memory.shown:
        parts.append(draw_memory(info.memory, unit, width))
    if info.ranks is not None and any(info.ranks.barriers):
        parts.append(draw_timeline(info.ranks, width))
    if info.modes is not None and info.modes.tables:
        parts.append(draw_modes(info.modes, unit, width))
    if info.answers != Answers():
        parts.append(draw_answers(info.answers))
    return Group(*parts)
