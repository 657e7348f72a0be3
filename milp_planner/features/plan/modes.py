"""Mode × cache ratio: where every table sits, how many share a place, how much they hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from milp_planner.drawing.charts import WIDTH, Drawing, Scale
from milp_planner.drawing.units import shorten, show_amount
from milp_planner.features.plan.tables import TablesInfo, facets_of, per_memory
from milp_planner.pricing.options import MODES


@dataclass(frozen=True)
class ModeCell:
    """One mode at one ratio.

    Attributes
    ----------
    mode, ratio : str
        ``ratio`` is empty for HBM_ONLY and HOST_ONLY.
    tables : tuple of str
    used : dict of resource to int
        Bytes, summed over all places.
    """

    mode: str
    ratio: str
    tables: tuple[str, ...]
    used: dict[str, int]


@dataclass(frozen=True)
class TableMode:
    """One table.

    Attributes
    ----------
    table, mode, ratio : str
    share : float
        Of its rows, what HBM has room for: the ratio, 1 for HBM_ONLY, 0 for HOST_ONLY.
    used : dict of resource to int
        Bytes, summed over all places.
    """

    table: str
    mode: str
    ratio: str
    share: float
    used: dict[str, int]


@dataclass(frozen=True)
class ModesInfo:
    """Every table from all HBM to none (of equals the largest first), and the cells in use."""

    tables: tuple[TableMode, ...]
    cells: tuple[ModeCell, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def modes_of(info: TablesInfo) -> ModesInfo:
    """Group the tables of a plan; options whose names say no mode are left out."""
    tables = []
    for row in info.rows:
        facets = facets_of(row.option)
        if facets is not None:
            share = 1.0 if facets.mode == "HBM_ONLY" else float(Fraction(facets.ratio or 0))
            tables.append(TableMode(row.name, facets.mode, facets.ratio, share, dict(row.used)))
    tables.sort(key=lambda t: (*_order((t.mode, t.ratio)), -sum(t.used.values()), t.table))
    cells = []
    for (mode, ratio), group in groupby(tables, key=lambda t: (t.mode, t.ratio)):
        inside = list(group)
        used = {name: sum(t.used[name] for t in inside) for name in inside[0].used}
        cells.append(ModeCell(mode, ratio, tuple(t.table for t in inside), used))
    return ModesInfo(tuple(tables), tuple(cells))


def _order(cell: tuple[str, str]) -> tuple[int, Fraction]:
    mode, ratio = cell
    return MODES.index(mode), -Fraction(ratio or 0)


#: Tables drawn one by one; of more, the table of modes counts.
MOST_TABLES = 48
_LEFT, _RIGHT, _ROW, _NAME = 190, 320, 20.0, 26


def modes_svg(info: ModesInfo, unit: str) -> Drawing | None:
    """How much of each table HBM has room for, and in which mode; None where they are many."""
    if len(info.tables) > MOST_TABLES:
        return None
    foot = 6 + _ROW * len(info.tables)
    drawing = Drawing("Mode and cache ratio of each table", _about(info), foot + 40)
    across = Scale(0, 1, _LEFT, WIDTH - _RIGHT)
    for index, table in enumerate(info.tables):
        y = 6 + index * _ROW
        words = f"{table.mode} {table.ratio}".strip()
        tip = f"{table.table}: {words}, {_used(table.used, unit)}"
        drawing.text(_LEFT - 8, y + 13, shorten(table.table, _NAME), "end")
        drawing.rect(_LEFT, y, across.stop - _LEFT, _ROW - 4, "room", tip)
        drawing.rect(_LEFT, y, across.at(table.share) - _LEFT, _ROW - 4, f"m-{table.mode}", tip)
        drawing.text(WIDTH - _RIGHT + 10, y + 13, words)
        drawing.text(WIDTH, y + 13, _used(table.used, unit), "end", "label")
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = across.at(share)
        drawing.line([(x, 2), (x, foot)], "over-grid")
        drawing.text(x, foot + 15, f"{share:.0%}", "middle")
    drawing.text(across.stop, foot + 34, "rows of the table that HBM has room for", "end", "label")
    return drawing


def _about(info: ModesInfo) -> str:
    tables: dict[str, list[TableMode]] = {}
    for table in info.tables:
        tables.setdefault(table.mode, []).append(table)
    return ", ".join(f"{len(found):,} {mode}" for mode, found in tables.items()) + "."


def _used(used: dict[str, int], unit: str) -> str:
    held = ((name, amount) for name, amount in per_memory(used).items() if amount)
    return " + ".join(f"{show_amount(amount, unit)} {name.upper()}" for name, amount in held)
