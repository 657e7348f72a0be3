"""Mode × cache ratio: how many tables sit where, and how much they hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from milp_planner.report.tables import MODES, TablesInfo, facets_of


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
class ModesInfo:
    """Cells in use, from all HBM to none."""

    cells: tuple[ModeCell, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def modes_of(info: TablesInfo) -> ModesInfo:
    """Group the tables of a plan; options whose names say no mode are left out."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(info.rows):
        facets = facets_of(row.option)
        if facets is not None:
            found.setdefault((facets.mode, facets.ratio), []).append(index)
    cells = []
    for mode, ratio in sorted(found, key=_order):
        rows = [info.rows[i] for i in found[mode, ratio]]
        names = rows[0].used
        used = {name: sum(row.used[name] for row in rows) for name in names}
        cells.append(ModeCell(mode, ratio, tuple(row.name for row in rows), used))
    return ModesInfo(tuple(cells))


def _order(cell: tuple[str, str]) -> tuple[int, Fraction]:
    mode, ratio = cell
    return MODES.index(mode), -Fraction(ratio or 0)
