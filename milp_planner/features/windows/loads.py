"""Loads of the windows of a run, as read from a CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice
from milp_planner.inputs.quantities import parse_count
from milp_planner.inputs.strict_yaml import csv_lines
from milp_planner.today.rows import refuse

ROWS, STEPS = "rows", "steps"
"""Columns: embeddings that the hottest rank returns in the window's worst step; steps in it."""


@dataclass(frozen=True)
class Window:
    """One window."""

    name: str
    rows: dict[str, int]
    """Rows that the hottest rank returns in the worst step, by table; all together under
    :data:`ROWS`."""
    steps: int


def read_loads(path: Path, tables: Sequence[str], steps: int) -> tuple[Window, ...]:
    """Read windows in their order.

    Parameters
    ----------
    path : Path
        A CSV whose header is ``window``, then ``rows`` or names of tables, and ``steps`` if windows
        differ in their number of steps.
    tables : sequence of str
        Tables that a column may name.
    steps : int
        Steps of a window without that column.

    Raises
    ------
    BadInput
        Every wrong line, with what is allowed.
    """
    lines = [(line, cells) for line, cells in csv_lines(path) if not cells[0].startswith("#")]
    if not lines:
        raise BadInput(f"{path}: has no header; needs window, rows")
    header = _header(lines[0][1], path, tables)
    found, wrong = [], []
    for line, cells in lines[1:]:
        try:
            found.append(_window(header, cells, steps))
        except (BadInput, ValueError) as error:
            wrong.append(f"{path}:{line}: {error}")
    refuse(wrong)
    if not found:
        raise BadInput(f"{path}: has no window; needs one line or more below the header")
    return tuple(found)


def _header(cells: list[str], path: Path, tables: Sequence[str]) -> list[str]:
    named = [cell for cell in cells if cell in tables]
    for cell in cells[1:]:
        if cell not in (ROWS, STEPS, *tables):
            raise BadInput(f"{path}: column {cell!r}: {choice(cell, [ROWS, STEPS, *tables])}")
    if cells[0] != "window" or len({*cells}) != len(cells):
        raise BadInput(f"{path}: found the header {', '.join(cells)}; needs window, each name once")
    if (ROWS in cells) == bool(named):
        raise BadInput(f"{path}: needs a column {ROWS}, or columns named after tables, not both")
    return cells


def _window(header: list[str], cells: list[str], steps: int) -> Window:
    if len(cells) != len(header):
        raise BadInput(f"found {len(cells)} cells; allowed: {len(header)}")
    values = dict(zip(header[1:], map(parse_count, cells[1:]), strict=True))
    if values.get(STEPS) == 0:
        raise BadInput("found 0 steps; allowed: from 1")
    return Window(
        cells[0], {n: v for n, v in values.items() if n != STEPS}, values.get(STEPS, steps)
    )
