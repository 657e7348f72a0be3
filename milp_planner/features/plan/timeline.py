"""The phases of a step, drawn: every rank works, then waits for the slowest."""

from __future__ import annotations

from itertools import accumulate

from milp_planner.drawing.charts import WIDTH, Drawing, Scale
from milp_planner.drawing.units import show_cost, show_time, time_unit
from milp_planner.features.plan.ranks import RankRow, RanksInfo

#: Ranks drawn; of more the busiest, and who sets a barrier.
MOST_RANKS = 32
_LEFT, _RIGHT, _TOP, _ROW = 84, 150, 8, 22.0


def timeline_svg(info: RanksInfo) -> Drawing:
    """A row a rank; full colour where the rank sets the barrier, pale where it waits."""
    rows = info.rows if len(info.rows) <= MOST_RANKS else info.busiest(MOST_RANKS)
    total = sum(info.barriers)
    most = max(row.cost for row in info.rows)
    slowest = [row.rank for row in info.rows if row.cost == most]
    also = f" and {len(slowest) - 1} more" if len(slowest) > 1 else ""
    about = (
        f"Step time {show_cost(total, info.time_unit)}. Busiest: rank {slowest[0]}{also} "
        f"with {show_cost(most, info.time_unit)} of work."
    )
    foot = _TOP + _ROW * len(rows)
    drawing = Drawing("Time of each rank in each phase, with barriers", about, foot + 44)
    across = Scale(0, max(1, total), _LEFT, WIDTH - _RIGHT)
    edges = [0, *accumulate(info.barriers)]
    for index, row in enumerate(rows):
        _row(drawing, info, row, across, edges, _TOP + index * _ROW, row.cost == most)
    for edge in edges:
        drawing.line([(across.at(edge), _TOP - 5), (across.at(edge), foot + 3)], "barrier")
    unit = time_unit([total])
    for tick in across.ticks(6):
        words = show_time(round(tick), unit) if info.time_unit == "ps" else f"{tick:,.0f}"
        drawing.text(across.at(tick), foot + 19, words, "middle")
    drawing.text(WIDTH - _RIGHT, foot + 38, "time from the start of the step", "end", "label")
    return drawing


def _row(
    drawing: Drawing, info: RanksInfo, row: RankRow, across: Scale, edges: list[int], y: float,
    busiest: bool,
) -> None:  # fmt: skip
    style = "strong" if busiest else ""
    drawing.text(_LEFT - 8, y + 15, f"rank {row.rank}", "end", style)
    drawing.rect(
        across.start, y + 2, across.stop - across.start, _ROW - 5, "room",
        f"rank {row.rank} works {show_cost(row.cost, info.time_unit)}",
    )  # fmt: skip
    for phase, value in enumerate(row.phases):
        if not value:
            continue
        critical = row.critical[phase]
        tip = f"rank {row.rank}, {info.phases[phase]}: {show_cost(value, info.time_unit)}"
        x = across.at(edges[phase])
        drawing.rect(
            x, y + 2, across.at(edges[phase] + value) - x, _ROW - 5,
            f"p{phase % 6}" + ("" if critical else " waits"),
            tip + (" (slowest)" if critical else ""),
        )  # fmt: skip
    words = show_cost(row.cost, info.time_unit) + (" busiest" if busiest else "")
    drawing.text(WIDTH - _RIGHT + 10, y + 15, words, "start", style)
