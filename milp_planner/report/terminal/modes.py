"""Mode × cache ratio on a terminal: table by table, or how many tables share each pair."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.report.modes import ModesInfo
from milp_planner.report.tables import per_memory
from milp_planner.report.terminal.bars import FREE, MODE_STYLE, bar_rows, room, stack
from milp_planner.report.units import shorten, show_amount

#: Tables drawn one by one; more are counted.
MOST_TABLES = 24
#: Columns of the longest name and of the shortest bar.
_NAME, _BAR = 28, 12


def draw_modes(info: ModesInfo, unit: str, width: int) -> RenderableType:
    """How much of every table HBM has room for, and in which mode."""
    if len(info.tables) > MOST_TABLES:
        return _counted(info, unit, width)
    notes = _table_notes(info, unit)
    least = width - len("HBM_ONLY") - max(map(len, notes)) - _BAR - 4
    name = min(_NAME, max(8, least), max(len(t.table) for t in info.tables))
    labels = [f"{shorten(t.table, name):<{name}} {t.mode:<9}" for t in info.tables]
    length = room(width, labels, notes)
    bars = [
        stack([(round(t.share * 1000), MODE_STYLE[t.mode]),
               (1000 - round(t.share * 1000), FREE)], 1000, length)
        for t in info.tables
    ]  # fmt: skip
    title = Text("mode and cache ratio of each table (bar: share of its rows in HBM)", style="bold")
    return Group(title, bar_rows(labels, bars, notes, length))


def _table_notes(info: ModesInfo, unit: str) -> list[str]:
    """Ratio, then what each memory holds, in columns."""
    found = [f"{t.ratio:>4}" for t in info.tables]
    held = [per_memory(t.used) for t in info.tables]
    for memory in (name for name in held[0] if any(each[name] for each in held)):
        shown = [f"{show_amount(h[memory], unit)} {memory}" if h[memory] else "" for h in held]
        wide = max(map(len, shown))
        found = [f"{note}  {text:>{wide}}" for note, text in zip(found, shown, strict=True)]
    return found


def _counted(info: ModesInfo, unit: str, width: int) -> RenderableType:
    labels = [f"{cell.mode:<9} {cell.ratio:>4}" for cell in info.cells]
    notes = [f"{len(cell.tables):,} tables, {_used(cell.used, unit)}" for cell in info.cells]
    length = room(width, labels, notes)
    most = max(len(cell.tables) for cell in info.cells)
    bars = [stack([(len(c.tables), MODE_STYLE[c.mode])], most, length) for c in info.cells]
    title = Text("tables in each mode at each cache ratio", style="bold")
    return Group(title, bar_rows(labels, bars, notes, length))


def _used(used: dict[str, int], unit: str) -> str:
    """The memories that hold anything."""
    held = ((name, amount) for name, amount in per_memory(used).items() if amount)
    return ", ".join(f"{show_amount(amount, unit)} {name}" for name, amount in held)
