"""What changes from one plan to another, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.terminal import fitting_grid
from milp_planner.drawing.units import (
    UNKNOWN,
    show_amount,
    show_cost,
    show_gap,
    show_ranks,
    show_seconds,
)

if TYPE_CHECKING:
    from milp_planner.features.explain.diff import DiffInfo
    from milp_planner.features.explain.moves import MovesInfo
    from milp_planner.features.explain.replan import ReplanInfo

MOST_MOVES = 40


def draw_replan(info: ReplanInfo) -> RenderableType:
    """A row a limit."""
    rows = [
        [
            show_amount(step.limit, info.time_unit) if info.by == "bytes" else str(step.limit),
            UNKNOWN if step.moved_tables is None else str(step.moved_tables),
            show_amount(step.moved_bytes, info.time_unit),
            show_cost(step.objective, info.time_unit),
            change_text(step.objective, info.now),
            show_gap(step.gap),
            step.status,
        ]
        for step in info.steps
    ]
    now = "no longer fits" if info.now is None else show_cost(info.now, info.time_unit)
    headers = ("may move", "tables", "bytes", info.objective_kind, "change", "gap", "status")
    title = Text(f"re-plan: the plan in production: {now}", style="bold")
    new = [Text(f"new tables, free to place: {', '.join(info.new_tables[:12])}")]
    grid = fitting_grid(headers, rows, {}, left=("status",))
    return Group(title, grid, *(new if info.new_tables else []))


def draw_moves(info: MovesInfo, everything: bool = False) -> RenderableType:
    """What the first moves bring, then the moves themselves."""
    title = Text(moves_text(info), style="bold")
    if info.way is None or not info.way.moves:
        return title
    told = fitting_grid(("moves", "tables", "bytes", info.objective_kind, "of the gain"),
                        moves_rows(info), {}, left=())  # fmt: skip
    shown = info.way.moves if everything else info.way.moves[: MOST_MOVES // 2]
    rows = [
        [str(number), ", ".join(move.tables), show_amount(move.bytes, info.time_unit),
         show_cost(move.objective, info.time_unit)]
        for number, move in enumerate(shown, start=1)
    ]  # fmt: skip
    grid = fitting_grid(("move", "tables", "bytes", "then"), rows, {"tables": 20}, left=("tables",))
    hidden = len(info.way.moves) - len(shown)
    more = [Text(f"… and {hidden} more (--all shows them)")] if hidden else []
    stuck = [Text(stuck_text(info.way.stuck))] if info.way.stuck else []
    return Group(title, told, grid, *more, *stuck)


def moves_text(info: MovesInfo) -> str:
    """From what to what."""
    before, after = (show_cost(v, info.time_unit) for v in (info.before, info.after))
    if not info.fits:
        return f"moves: today's plan ({before}) does not fit, so there is no way from it"
    return f"moves: {info.objective_kind} {before} today → {after}"


def moves_rows(info: MovesInfo) -> list[list[str]]:
    """A row for 1, 5, 20, 100 and all moves."""
    shares = [info.share(point) for point in info.told]
    return [
        [f"{point.moves:,}", f"{point.tables:,}", show_amount(point.bytes, info.time_unit),
         show_cost(point.objective, info.time_unit), UNKNOWN if share is None else f"{share:.0%}"]
        for point, share in zip(info.told, shares, strict=True)
    ]  # fmt: skip


def stuck_text(tables: Sequence[str], most: int = 5) -> str:
    """Which tables no order was found for."""
    more = f" and {len(tables) - most} more" if len(tables) > most else ""
    return (
        "cannot move on their own, as memory does not hold old and new at once: "
        f"{', '.join(tables[:most])}{more}"
    )


def draw_diff(info: DiffInfo, everything: bool = False) -> RenderableType:
    """What moved, then whether it pays."""
    shown = info.tables if everything else info.tables[:MOST_MOVES]
    rows = [
        [
            row.table, row.change, row.before or UNKNOWN, row.after or UNKNOWN,
            show_ranks([r for block in row.ranks_after for r in block], -1),
            show_amount(row.bytes, info.time_unit),
        ]
        for row in shown
    ]  # fmt: skip
    headers = ("table", "change", "before", "after", "ranks", "bytes")
    least = {"ranks": 10, "before": 18, "after": 18, "table": 12}
    grid = fitting_grid(headers, rows, least, left=headers[:5])
    hidden = len(info.tables) - len(shown)
    more = [Text(f"… and {hidden} more (--all shows them)")] if hidden else []
    title = Text(
        f"diff: {info.moved_tables} tables move, {show_amount(info.moved_bytes, info.time_unit)}; "
        f"{info.same} stay",
        style="bold",
    )
    return Group(title, *([grid] if rows else []), *more, Text(pays_text(info)))


def pays_text(info: DiffInfo) -> str:
    """Gain, and when the move has paid for itself."""
    if info.before is None:
        return "the first plan does not belong to the second's tables and cluster: no gain is known"
    before, after = (show_cost(v, info.time_unit) for v in (info.before, info.after))
    text = f"{info.objective_kind} {before} → {after}"
    if not info.before_fits:
        text += " (the first plan no longer fits)"
    if info.gain is None or info.gain <= 0:
        return text + "; it never pays by time alone"
    if info.move_seconds is None or info.pays_after_steps is None:
        return text + "; what the move takes is not known"
    if info.move_seconds == 0:
        return text + "; no rank receives a table that it held nothing of"
    takes, steps = show_seconds(info.move_seconds), info.pays_after_steps
    return f"{text}; moving takes at least {takes}, paid back after {steps:,} steps or more"


def change_text(value: int | None, now: int | None) -> str:
    """How much more or less than now, in percent."""
    if value is None or now is None:
        return UNKNOWN
    if value == now:
        return "="
    return f"{100 * (value - now) / max(1, abs(now)):+.1f}%"
