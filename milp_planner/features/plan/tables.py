"""The option, ranks, memory and time of every table of a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from rich.console import RenderableType

from formulations import Instance, Placement
from formulations.result.piles import piles
from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.units import show_ranks
from milp_planner.files import Facts
from milp_planner.plans.compile import memories, per_memory
from milp_planner.pricing.options import MODES, TIERED


@dataclass(frozen=True)
class Facets:
    """The parts of a priced option's name, such as ``row_wise/CACHING/0.3/roundrobin``."""

    sharding: str
    """Sharding type, with the number of column shards: ``column_wise:2``."""
    mode: str
    ratio: str
    """Cache ratio; empty for HBM_ONLY and HOST_ONLY."""
    routing: str
    """dist_type of a dynamicemb table, and any further parts of the name."""


def facets_of(option: str) -> Facets | None:
    """The parts of an option's name; None for TorchRec's and the literature's names."""
    parts = option.split("/")
    if len(parts) < 2 or parts[1] not in MODES:
        return None
    tiered = parts[1] in TIERED
    if tiered and len(parts) < 3:
        return None
    cut = len(parts) > 3 and parts[2].isdigit() and parts[3].isdigit()  # such as 1/3
    ratio = "" if not tiered else "/".join(parts[2:4]) if cut else parts[2]
    rest = parts[2 + (ratio.count("/") + 1 if ratio else 0) :]
    return Facets(parts[0], parts[1], ratio, " ".join(rest))


@dataclass(frozen=True)
class TableRow:
    """One table of a plan."""

    name: str
    option: str
    ranks: tuple[tuple[int, ...], ...]
    """Ranks of each block's shards, in position order."""
    used: dict[str, int]
    """Use by resource name, summed over its shards, in bytes (the instance's unit)."""
    most: dict[str, int]
    """Largest use on one rank, by resource name."""
    cost: int
    """Largest sum of costs on one rank (or overall, if it occupies no rank)."""


@dataclass(frozen=True)
class TablesInfo(Facts):
    """All tables of a plan, in the instance's order."""

    rows: tuple[TableRow, ...]
    num_ranks: int
    time_unit: str

    def costliest(self, count: int) -> tuple[TableRow, ...]:
        """The ``count`` tables with the largest cost, kept in the instance's order."""
        order = sorted(range(len(self.rows)), key=lambda i: (-self.rows[i].cost, i))[:count]
        return tuple(self.rows[i] for i in sorted(order))


def tables_of(instance: Instance, placement: Placement) -> TablesInfo:
    """The rows of all tables of a well-formed placement."""
    return TablesInfo(
        rows=tuple(_row(instance, placement, t) for t in range(instance.num_tables)),
        num_ranks=instance.num_ranks,
        time_unit=instance.time_unit,
    )


def _row(instance: Instance, placement: Placement, table: int) -> TableRow:
    option = int(placement.options[table])
    cost, use, off_cost, off_use = piles(instance, placement, [table])
    return TableRow(
        name=instance.table_names[table],
        option=instance.option_names[option],
        ranks=tuple(tuple(block) for block in placement.to_lists(table)),
        used={r.name: int(use[:, i].sum() + off_use[i]) for i, r in memories(instance)},
        most={r.name: int(use[:, i].max()) for i, r in memories(instance)},
        cost=int(cost.sum(axis=1).max()) or int(off_cost.sum()),
    )


#: Most tables to show; one line counts the rest.
MOST_TABLES = 40
#: Columns that shrink on a narrow terminal, in this order, with their minimum widths.
_LEAST = {"table": 16, "option": 24, "sharding": 8, "routing": 14, "ranks": 8}


def draw_tables(info: TablesInfo, everything: bool = False) -> RenderableType:
    """Option, ranks, memory and time of every table (of the costliest if there are many)."""
    cut = len(info.rows) > MOST_TABLES and not everything
    rows = info.costliest(MOST_TABLES) if cut else info.rows
    note = [f"… and {len(info.rows) - len(rows)} cheaper tables (--all shows them)"]
    return headed("per table", table_grid(replace(info, rows=rows)), *(note if cut else []))


def table_grid(info: TablesInfo) -> Grid:
    """One row per table, with a column for each part of its option's name.

    Ratio and routing are left out where no table has one; where some option's name has no parts, it
    is one column.
    """
    facets = [facets_of(row.option) for row in info.rows]
    known = [f for f in facets if f is not None]
    parts: tuple[str, ...] = ("option",)
    if len(known) == len(facets):
        some = ("sharding", "mode", "ratio", "routing")
        parts = tuple(n for n in some if n in some[:2] or any(getattr(f, n) for f in known))
    unit = info.time_unit
    names = per_memory(info.rows[0].used) if info.rows else ()
    memories = [f"#{name}|{name.upper()}" for name in names]
    head = ("table", *parts, "ranks", *memories, f"#{'time' if unit == 'ps' else unit}")
    rows = [
        (
            row.name,
            *(getattr(facet or row, part) for part in parts),
            show_ranks([rank for block in row.ranks for rank in block], info.num_ranks),
            *(Cell.amount(amount, unit) for amount in per_memory(row.used).values()),
            Cell.cost(row.cost, unit),
        )
        for row, facet in zip(info.rows, facets, strict=True)
    ]
    caption, folded = "Every table and where it is", (*parts, "ranks")
    return Grid.of("tables-all", "tables", caption, head, rows, _LEAST, folded)


@dataclass(frozen=True)
class ModeCell:
    """The tables with one mode at one cache ratio."""

    mode: str
    ratio: str
    """Empty for HBM_ONLY and HOST_ONLY."""
    tables: tuple[str, ...]
    used: dict[str, int]
    """Bytes by resource, summed over all places."""


@dataclass(frozen=True)
class ModesInfo(Facts):
    """The modes and ratios in use, from all HBM to none."""

    cells: tuple[ModeCell, ...]


def modes_of(info: TablesInfo) -> ModesInfo:
    """Group a plan's tables by mode and ratio, without options whose names give no mode."""
    found: dict[tuple[str, str], list[TableRow]] = {}
    for row in info.rows:
        facets = facets_of(row.option)
        if facets is not None:
            found.setdefault((facets.mode, facets.ratio), []).append(row)
    cells = []
    order = sorted(found, key=lambda cell: (MODES.index(cell[0]), -Fraction(cell[1] or 0)))
    for mode, ratio in order:
        inside = sorted(found[mode, ratio], key=lambda row: (-sum(row.used.values()), row.name))
        used = {name: sum(row.used[name] for row in inside) for name in inside[0].used}
        cells.append(ModeCell(mode, ratio, tuple(row.name for row in inside), used))
    return ModesInfo(tuple(cells))
