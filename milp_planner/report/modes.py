"""Mode × cache ratio: where every table sits, how many share a place, how much they hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from milp_planner.options.choice import MODES
from milp_planner.report.tables import TablesInfo, facets_of


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

    @property
    def ratios(self) -> tuple[str, ...]:
        """Cache ratios in use, descending."""
        found = {cell.ratio for cell in self.cells if cell.ratio}
        return tuple(sorted(found, key=Fraction, reverse=True))

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
