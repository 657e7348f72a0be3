"""The raw table of a batch: every scenario, with a column for each thing that varies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from milp_planner.report.batch.info import BatchInfo
from milp_planner.report.batch.rows import Row
from milp_planner.report.html.parts import Cell, Column, Grid, Part, Section
from milp_planner.report.units import UNKNOWN, show_bytes, show_cost, show_gap

_BYTES = ("hbm", "ddr")


@dataclass(frozen=True)
class _Column:
    name: str
    cell: Callable[[Row], Cell]
    numeric: bool = False


def every_section(info: BatchInfo) -> Section | None:
    """All scenarios; what is the same in all of them is said once, above the table."""
    if not info.rows:
        return None
    names, common = [], []
    shared = shared_ending([row.model for row in info.rows])
    if shared:
        common.append(f"models end in {shared}")
    for column in _labels(info.rows, len(shared)):
        texts = {column.cell(row).text for row in info.rows}
        if len(texts) > 1:
            names.append(column)
        else:
            common.append(f"{column.name} {texts.pop()}")
    every = [*names, *_answers(info.rows)]
    grid = Grid(
        "scenarios",
        "scenarios",
        "Every scenario; gap is to the best bound known for the same inputs",
        tuple(Column(column.name.replace("_", " "), column.numeric) for column in every),
        tuple(tuple(column.cell(row) for column in every) for row in info.rows),
    )
    text = f"In all of them: {'; '.join(common)}." if common else ""
    return Section("every", "Every scenario", text, parts=(Part(table=grid),))


def shared_ending(names: Sequence[str]) -> str:
    """The comma-separated settings that end every one of several generated models' names."""
    tails = [name.split(",")[::-1] for name in dict.fromkeys(names)]
    if len(tails) < 2:
        return ""
    same = 0
    while all(len(tail) > same + 1 and tail[same] == tails[0][same] for tail in tails):
        same += 1
    return "".join(f",{part}" for part in tails[0][:same][::-1])


def _labels(rows: Sequence[Row], cut: int) -> list[_Column]:
    """What a scenario is called; ``cut`` letters are left off the models' names."""
    axes = dict.fromkeys(axis for row in rows for axis in row.axes)
    options = dict.fromkeys(option for row in rows for option in row.options)
    return [
        _Column("model", lambda row: Cell(row.model[: len(row.model) - cut])),
        _Column("cluster", lambda row: Cell(row.cluster)),
        *(_Column(a, lambda row, a=a: _value(a, row.axes.get(a)), True) for a in axes),  # type: ignore[misc]
        _Column("objective", lambda row: Cell(row.objective_kind)),
        _Column("formulation", lambda row: Cell(row.formulation)),
        *(_Column(o, lambda row, o=o: _value(o, row.options.get(o)), True) for o in options),  # type: ignore[misc]
        _Column("seed", lambda row: Cell(str(row.seed), row.seed), True),
    ]


def _answers(rows: Sequence[Row]) -> list[_Column]:
    """What came out; a note says why there is no plan."""
    found = [
        _Column(
            "status", lambda row: Cell(row.status.replace("_", " "), over=row.status == "failed")
        ),
        _Column("value", lambda row: _number(row.objective, show_cost(row.objective, "ps")), True),
        _Column("bound", lambda row: _number(row.bound, show_cost(row.bound, "ps")), True),
        _Column("gap", lambda row: _number(row.best_gap, show_gap(row.best_gap)), True),
        _Column("above best", lambda row: _number(row.above_best, show_gap(row.above_best)), True),
        _Column("s", lambda row: _number(row.seconds, f"{row.seconds or 0:.3g}"), True),
    ]
    for resource in dict.fromkeys(name for row in rows for name in row.headroom):
        found.append(
            _Column(f"{resource} free", lambda row, r=resource: _share(row.headroom.get(r)), True)  # type: ignore[misc]
        )
    if any(row.note for row in rows if row.objective is None):
        found.append(_Column("note", lambda row: Cell(row.note if row.objective is None else "")))
    return found


def _status(row: Row) -> Cell:
    return Cell(row.status.replace("_", " "), over=row.status == "failed")


def _value(name: str, value: Any) -> Cell:
    """An axis or a setting: sizes as bytes, numbers sorted as numbers."""
    if value is None:
        return Cell(UNKNOWN)
    if name in _BYTES and isinstance(value, int):
        return Cell(show_bytes(value), value)
    text = f"{value}%" if name == "growth" else str(value)
    try:
        return Cell(text, float(value))
    except ValueError:
        return Cell(text)


def _number(value: float | None, text: str) -> Cell:
    return Cell(UNKNOWN) if value is None else Cell(text, round(value, 7))


def _share(value: float | None) -> Cell:
    return Cell(UNKNOWN) if value is None else Cell(f"{100 * value:.1f}%", round(value, 5))
