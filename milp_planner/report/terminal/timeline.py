"""The phases of a step on a terminal: every rank works, then waits for the slowest."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.report.ranks import RankRow, RanksInfo
from milp_planner.report.terminal.bars import bar_rows, room
from milp_planner.report.units import show_cost

#: Ranks drawn; of more the busiest.
MOST_RANKS = 16
_COLOURS = ("blue", "cyan", "yellow", "magenta", "green", "white")


def draw_timeline(info: RanksInfo, width: int) -> RenderableType:
    """One line a rank; a phase is as wide as its slowest rank is slow."""
    rows = info.rows if len(info.rows) <= MOST_RANKS else info.busiest(MOST_RANKS // 2)
    labels = [f"rank {row.rank}" for row in rows]
    most = max(row.cost for row in info.rows)
    notes = [
        show_cost(row.cost, info.time_unit) + (" busiest" if row.cost == most else "")
        for row in rows
    ]
    length = room(width, labels, notes)
    widths = _phase_widths(info.barriers, length)
    bars = [_line(row, info.barriers, widths) for row in rows]
    title = "time of each rank (· waits, │ barrier, ◀ barrier that waits for this rank)"
    lines: list[RenderableType] = [Text(title, style="bold")]
    lines.append(bar_rows(labels, bars, notes, max(map(len, bars))))
    if len(rows) < len(info.rows):
        lines.append(Text(f"… and {len(info.rows) - len(rows)} less busy ranks"))
    return Group(*lines, _phases(info))


def _phase_widths(barriers: tuple[int, ...], length: int) -> list[int]:
    """Columns of each phase, in proportion; one for its barrier is not counted."""
    total = sum(barriers)
    columns = max(1, length - sum(1 for b in barriers if b))
    return [max(1, columns * b // total) if b else 0 for b in barriers]


def _line(row: RankRow, barriers: tuple[int, ...], widths: list[int]) -> Text:
    text = Text()
    for phase, (barrier, columns) in enumerate(zip(barriers, widths, strict=True)):
        if not barrier:
            continue
        work = round(columns * row.phases[phase] / barrier)
        colour = _COLOURS[phase % len(_COLOURS)]
        text.append("█" * work, colour)
        text.append("·" * (columns - work), "dim")
        text.append(*(("◀", "bold red") if row.critical[phase] else ("│", "")))
    return text


def _phases(info: RanksInfo) -> Text:
    text = Text("phases: ")
    parts = [p for p, barrier in enumerate(info.barriers) if barrier]
    for index, phase in enumerate(parts):
        text.append("█ ", _COLOURS[phase % len(_COLOURS)])
        text.append(f"{info.phases[phase]} {show_cost(info.barriers[phase], info.time_unit)}")
        text.append(", " if index < len(parts) - 1 else "")
    return text
