"""The sections of a plan's page, each from one info value."""

from __future__ import annotations

from milp_planner.report.html.curves import draw_trace
from milp_planner.report.html.parts import (
    Cell,
    Fact,
    Grid,
    Key,
    Part,
    Section,
    Values,
    columns,
    rows,
)
from milp_planner.report.html.places import MOST_RANKS, draw_memory, draw_timeline
from milp_planner.report.info import ReportInfo
from milp_planner.report.ranks import FOLD_ABOVE, RanksInfo
from milp_planner.report.shortage import ShortageInfo
from milp_planner.report.tables import TablesInfo, facets_of
from milp_planner.report.units import (
    UNKNOWN,
    show_amount,
    show_cost,
    show_gap,
    show_ranks,
    show_seconds,
    show_share,
)
from milp_planner.report.verdict import MEANING, VerdictInfo


def strip(info: VerdictInfo) -> list[Fact]:
    """Status, objective, bound, gap, the tightest places, time."""
    unit = info.time_unit
    found = [Fact("status", info.status, info.note, info.status)]
    if info.objective is not None:
        found.append(
            Fact(info.objective_kind, show_cost(info.objective, unit), MEANING[info.objective_kind])
        )
    if info.bound is not None:
        how = "in integers" if info.bound_exact else "in floating point"
        found.append(
            Fact("proved bound", show_cost(info.bound, unit), f"{info.bound_method}, {how}")
        )
    if info.certified_bound is not None:
        found.append(
            Fact("certified bound", show_cost(info.certified_bound, unit), "verify re-derives it")
        )
    if info.objective is not None:
        note = "no plan is better" if info.proved else "how far the plan may be from the best"
        note = "no bound is known" if info.gap is None else note
        found.append(Fact("gap", show_gap(info.gap), note))
    for place in info.tightest:
        over = place.headroom < 0
        at = "the cluster" if place.scope == "cluster" else f"{place.scope} {place.place}"
        share = show_share(place.used, place.capacity)
        note = f"{at}: {show_amount(abs(place.headroom), unit)} {'too much' if over else 'free'}"
        found.append(Fact(f"tightest {place.resource}", share, note, "over" if over else ""))
    found.append(Fact("solved in", show_seconds(info.seconds), info.formulation))
    return found


def memory_section(info: ReportInfo) -> Section | None:
    """Stacks or heat map of every tier that holds anything."""
    if info.memory is None:
        return None
    unit = info.verdict.time_unit
    parts, modes = [], {}
    for tier in info.memory.tiers:
        if not (any(map(sum, tier.used)) or any(tier.capacity)):
            continue
        drawing = draw_memory(info.memory, tier, unit)
        parts.append(Part(drawing.title, drawing.render(), drawing.about))
        if not (len(tier.capacity) > FOLD_ABOVE and tier.scope == "rank"):
            modes.update(dict.fromkeys(tier.modes))
    if not parts:
        return None
    keys = tuple(Key(f"m-{mode}", mode) for mode in modes) + (
        (Key("room", "free, up to the capacity"),) if modes else ()
    )
    return Section("memory", "Memory", "Use of every place against its capacity (thick line).",
                   keys, tuple(parts))  # fmt: skip


def time_section(info: ReportInfo) -> Section | None:
    """The timeline, then every rank as a table."""
    if info.ranks is None or not any(info.ranks.barriers):
        return None
    ranks = info.ranks
    drawing = draw_timeline(ranks)
    shown = f" The {MOST_RANKS} busiest ranks are drawn." if len(ranks.rows) > MOST_RANKS else ""
    text = (
        "The embedding part of a step, with a barrier after each phase and no overlap: a phase "
        f"lasts as long as its slowest rank (framed).{shown}"
    )
    keys = tuple(Key(f"p{i % 6}", name) for i, name in enumerate(ranks.phases) if ranks.barriers[i])
    parts = (Part("", drawing.render(), drawing.about), Part(table=_rank_grid(ranks)))
    return Section("time", "Time", text, keys, parts)


def _rank_grid(info: RanksInfo) -> Grid:
    names = [use.resource for use in info.rows[0].usage]
    busy = [p for p, slowest in enumerate(info.barriers) if slowest]
    head = columns("#rank", "#machine", *(f"#{n} used" for n in names), *(f"#{n} %" for n in names),
                   *(f"#{info.phases[p]}" for p in busy), "#sum")  # fmt: skip
    values: Values = []
    for row in info.rows:
        cells: list[str | Cell] = [
            Cell(str(row.rank), row.rank),
            Cell(str(row.machine), row.machine),
        ]
        over = [use.used > use.capacity for use in row.usage]
        cells += [
            Cell(show_amount(u.used, info.time_unit), u.used, o)
            for u, o in zip(row.usage, over, strict=True)
        ]
        cells += [
            Cell(show_share(u.used, u.capacity), u.used / max(1, u.capacity), o)
            for u, o in zip(row.usage, over, strict=True)
        ]
        cells += [
            Cell(show_cost(v, info.time_unit), v)
            for v in (*(row.phases[p] for p in busy), row.cost)
        ]
        values.append(cells)
    return Grid("ranks", "ranks", "Every rank: memory and time", head, rows(values))


def modes_section(info: ReportInfo) -> Section | None:
    """How many tables are in each mode at each ratio."""
    if info.modes is None or not info.modes.cells:
        return None
    unit = info.verdict.time_unit
    names = list(info.modes.cells[0].used)
    values: Values = [
        [
            cell.mode, cell.ratio or UNKNOWN, Cell(str(len(cell.tables)), len(cell.tables)),
            *(Cell(show_amount(cell.used[n], unit), cell.used[n]) for n in names),
            ", ".join(cell.tables[:6]) + (" …" if len(cell.tables) > 6 else ""),
        ]
        for cell in info.modes.cells
    ]  # fmt: skip
    head = columns("mode", "cache ratio", "#tables", *(f"#{n}" for n in names), "which")
    grid = Grid(
        "modes-cells", "modes", "Tables and bytes in every mode and ratio", head, rows(values)
    )
    return Section("modes", "Modes and cache ratios", parts=(Part(table=grid),))


def tables_section(info: ReportInfo) -> Section | None:
    """Every table: option, ranks, bytes, time."""
    if info.tables is None:
        return None
    grid = table_grid(info.tables)
    text = "Time is the largest sum of a table's shards on one rank."
    return Section("tables", "Tables", text, parts=(Part(table=grid),))


def table_grid(info: TablesInfo) -> Grid:
    """All tables as a grid."""
    names = list(info.rows[0].used) if info.rows else []
    head = columns("table", "sharding", "mode", "ratio", "routing", "ranks",
                   *(f"#{n}" for n in names), "#time")  # fmt: skip
    values: Values = []
    for row in info.rows:
        facets = facets_of(row.option)
        what = (
            (row.option, UNKNOWN, UNKNOWN, UNKNOWN)
            if facets is None
            else (facets.sharding, facets.mode, facets.ratio, facets.routing)
        )
        ranks = show_ranks([r for block in row.ranks for r in block], info.num_ranks)
        values.append(
            [row.name, *what, ranks,
             *(Cell(show_amount(row.used[n], info.time_unit), row.used[n]) for n in names),
             Cell(show_cost(row.cost, info.time_unit), row.cost)]
        )  # fmt: skip
    return Grid("tables-all", "tables", "Every table and where it is", head, rows(values))


def trace_section(info: ReportInfo) -> Section | None:
    """Bound and incumbent over time."""
    drawing = draw_trace(info.trace, info.verdict.seconds, info.verdict.time_unit)
    if drawing is None:
        return None
    keys = (Key("mark objective", "best plan so far"), Key("mark bound", "proved bound"))
    text = f"What {info.verdict.formulation} knew at each moment."
    return Section("search", "Search", text, keys, (Part("", drawing.render(), drawing.about),))


def shortage_section(info: ShortageInfo | None, unit: str) -> Section | None:
    """Why nothing fits, and the least that would."""
    if info is None:
        return None
    values: Values = []
    for tier in info.tiers:
        needed = "proved: it alone is never enough"
        if tier.helps:
            needed = show_amount(tier.needed, unit)
        word = "proved" if tier.proved else "not proved least"
        values.append(
            [tier.resource, tier.scope, Cell(show_amount(tier.smallest, unit), tier.smallest),
             Cell(needed, tier.needed), Cell(show_amount(tier.short_by, unit), tier.short_by), word]
        )  # fmt: skip
    head = columns("tier", "of each", "#there now", "#needed everywhere", "#short by", "")
    grid = Grid("tiers", "tiers", "Each tier, the others left as they are", head, rows(values))
    return Section("why-not", "Why nothing fits", _conflict(info), parts=(Part(table=grid),))


def _conflict(info: ShortageInfo) -> str:
    parts = []
    if info.conflict_tables:
        word = "A smallest conflict" if info.irreducible else "A conflict"
        names = ", ".join(info.conflict_tables[:12])
        parts.append(f"{word}: {names} against {', '.join(info.conflict_constraints)}.")
    if info.drop_impossible:
        parts.append("Proved: dropping tables does not help.")
    elif info.drop is not None:
        word = "proved: no fewer do" if info.drop_proved else "fewer may do"
        parts.append(f"Or drop {len(info.drop)}: {', '.join(info.drop[:12])} ({word}).")
    return " ".join(parts)
