"""Measured access frequencies: a curve of ranks and shares, turned into classes of popularity."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from milp_planner.errors import BadInput
from milp_planner.inputs.problems import nearest
from milp_planner.inputs.strict_yaml import csv_lines

Points = tuple[tuple[int, float], ...]
"""Pairs (rank, share of the lookups that go to rows up to that rank), by rising rank."""

_FOLDER = resources.files("milp_planner.inputs") / "frequencies"
_HEADER = ["rank", "share"]


def curve_names() -> tuple[str, ...]:
    """Names of the shipped curves, sorted; the README.md in their folder describes them."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name[:-4] for name in names if name.endswith(".csv")))


def read_curve(name: str, folder: Path) -> Points:
    """A shipped curve by name, or a CSV file in the folder; else ValueError, one clause.

    The file has the columns ``rank`` and ``share``. Ranks and shares rise, and a row's share never
    rises with the rank.
    """
    if name.endswith(".csv"):
        return _points(folder / name)
    if name not in curve_names():
        close = nearest(name, curve_names())
        hint = f"; did you mean {close!r}?" if close else ""
        raise ValueError(f"found {name!r}{hint}; allowed: a .csv file, {', '.join(curve_names())}")
    with resources.as_file(_FOLDER / f"{name}.csv") as path:
        return _points(path)


def _points(path: Path) -> Points:
    try:
        lines = list(csv_lines(path))
    except BadInput as error:
        raise ValueError(str(error)) from None
    if not lines or lines[0][1] != _HEADER:
        raise ValueError(f"{path}: found other columns; allowed: the header rank,share")
    points: list[tuple[int, float]] = []
    steepest = float("inf")
    for number, cells in lines[1:]:
        try:
            (rank, share), before = (int(cells[0]), float(cells[1])), (points or [(0, 0.0)])[-1]
        except (ValueError, IndexError):
            raise ValueError(
                f"{path}:{number}: found {','.join(cells)}; allowed: a whole rank and a share"
            ) from None
        if rank <= before[0] or not before[1] < share <= 1:
            raise ValueError(f"{path}:{number}: allowed: rising ranks with shares rising up to 1")
        each = (share - before[1]) / (rank - before[0])
        if each > steepest * (1 + 1e-3):
            raise ValueError(f"{path}:{number}: allowed: shares of a row that fall with the rank")
        steepest = min(steepest, each)
        points.append((rank, share))
    if not points:
        raise ValueError(f"{path}: has no ranks; allowed: at least one")
    return tuple(points)


def bins_of_curve(points: Points, rows: int) -> tuple[tuple[float, float], ...]:
    """Shares of the rows and of the lookups by class, for a table of ``rows`` rows.

    A table smaller than the curve's has only the most popular rows, which share all lookups.
    Lookups that the curve does not cover fall evenly on the rows after its last rank, none of which
    is more popular than a row before it.
    """
    classes: list[tuple[float, float]] = []
    before, each = (0, 0.0), 1.0
    for rank, share in points:
        each = (share - before[1]) / (rank - before[0])
        count = min(rank, rows) - before[0]
        if count <= 0:
            break
        classes.append((count, count * each))
        before = (rank, share)
    if left := rows - min(before[0], rows):
        classes.append((left, min(1.0 - before[1], left * each)))
    total = sum(mass for _, mass in classes)
    return tuple((count / rows, mass / total) for count, mass in classes)
