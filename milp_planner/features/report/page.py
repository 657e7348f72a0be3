"""The HTML page of one plan, section by section."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from formulations import Outcome
from formulations.settings import TracePoint
from milp_planner.drawing.grid import Cell, Grid
from milp_planner.drawing.page import Fact, Key, Part, Section, fill, sentence
from milp_planner.drawing.units import (
    MOST_OF_A_RESTRICTION,
    UNKNOWN,
    memory_name,
    shorten,
    show_cost,
    show_gap,
    show_seconds,
    show_share,
)
from milp_planner.features.explain.answers import Answers
from milp_planner.features.explain.page import draw_trace, explained
from milp_planner.features.plan.divisions import DivisionsInfo, divisions_of, divisions_section
from milp_planner.features.plan.held import HeldInfo, held_grid, held_info, notes
from milp_planner.features.plan.memory import MemoryInfo, folds, memory_of, memory_svg
from milp_planner.features.plan.ranks import RanksInfo, rank_page, ranks_of
from milp_planner.features.plan.shortage import ShortageInfo, shortage_of, shortage_section
from milp_planner.features.plan.tables import (
    ModesInfo,
    TablesInfo,
    modes_of,
    table_grid,
    tables_of,
)
from milp_planner.features.plan.verdict import (
    MEANING,
    MOST_RANKS,
    STOPPED,
    VerdictInfo,
    timeline_svg,
    verdict_of,
)
from milp_planner.files import Facts, write_atomically
from milp_planner.plans.compile import per_memory
from milp_planner.plans.origins import OriginsInfo, origins_grid, origins_of, told
from milp_planner.plans.placement import Plan
from milp_planner.plans.warnings import hot_warnings


@dataclass(frozen=True)
class ReportInfo:
    """All figures of one plan; parts that need a placement are None without one."""

    model: str
    cluster: str
    profile: str
    """Names of model, cluster and profile."""
    num_ranks: int
    verdict: VerdictInfo
    tables: TablesInfo | None
    ranks: RanksInfo | None
    memory: MemoryInfo | None
    held: HeldInfo | None
    """The ledger; also None if an earlier version made the plan."""
    origins: OriginsInfo | None
    """Where the ranks' seconds and bytes come from."""
    modes: ModesInfo | None
    shortage: ShortageInfo | None
    """The diagnosis of an infeasible plan."""
    trace: tuple[TracePoint, ...]
    """The best plan and bound over time, ending with what the solve returned."""
    answers: Answers
    """Explanations to show."""
    divisions: DivisionsInfo | None
    """The divisions of a plan whose sharding groups were chosen with it."""
    uneven: tuple[str, ...]
    """Why the ranks' loads may be less even than they look."""
    fingerprint: str
    """Fingerprint of the Instance."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {
            name: value.to_dict() if isinstance(value, Facts | Answers) else value
            for name, value in values.items()
        }
        return plain | {"trace": [asdict(point) for point in self.trace]}


def report_of(plan: Plan, answers: Answers | None = None) -> ReportInfo:
    """Collect the figures of a plan's page."""
    instance, placement = plan.instance, plan.outcome.placement
    tables = None if placement is None else tables_of(instance, placement)
    held = held_info(plan)
    ledger = None if held is None else held.ledger
    return ReportInfo(
        model=plan.model.name,
        cluster=plan.cluster.name,
        profile=plan.profile.name,
        num_ranks=instance.num_ranks,
        verdict=verdict_of(instance, plan.outcome, ledger),
        tables=tables,
        ranks=None if placement is None else ranks_of(instance, placement, ledger),
        memory=None if placement is None else memory_of(instance, placement, ledger),
        held=held,
        origins=origins_of(plan, ledger),
        modes=None if tables is None else modes_of(tables),
        shortage=shortage_of(plan.outcome.detail),
        trace=_trace(plan.outcome),
        answers=answers or Answers(),
        divisions=divisions_of(plan),
        uneven=tuple(hot_warnings(plan)),
        fingerprint=instance.fingerprint,
    )


def _trace(outcome: Outcome) -> tuple[TracePoint, ...]:
    """The best known values at every moment, as a method that starts afresh reports worse ones."""
    last = TracePoint(outcome.seconds, outcome.objective, outcome.bound, outcome.formulation)
    found: list[TracePoint] = []
    objective = bound = None
    for point in (*outcome.trace, last):
        objective = min((v for v in (objective, point.objective) if v is not None), default=None)
        bound = max((v for v in (bound, point.bound) if v is not None), default=None)
        if objective is not None or bound is not None:
            found.append(replace(point, objective=objective, bound=bound))
    return tuple(found)


def render(info: ReportInfo) -> str:
    """The page as text: self-contained, with styles, script and drawings inside."""
    unit, ranks = info.verdict.time_unit, f"{info.num_ranks} rank{'s' * (info.num_ranks != 1)}"
    tables = "no placement" if info.tables is None else f"{len(info.tables.rows):,} tables"
    sections = [
        shortage_section(info.shortage or info.answers.why_not, unit),
        divisions_section(info.divisions),
        memory_section(info),
        time_section(info),
        _goals_section(info.verdict),
        _modes_section(info),
        *explained(info.answers),
        _trace_section(info),
        _tables_section(info),
    ]
    return fill(
        title=f"{info.model} on {info.cluster}",
        subtitle=f"{tables} on {ranks}, prices of profile {info.profile}",
        strip=strip(info.verdict),
        sections=sections,
        footer=f"Written by milp-planner. Instance {info.fingerprint[:16]}. milp-planner verify "
        "re-derives feasibility, objective and certified bound without a solver.",
    )


def strip(info: VerdictInfo) -> list[Fact]:
    """Status, objective, what is certified and proved, the tightest places, time."""
    unit = info.time_unit
    stopped = "" if info.proved_before_goals else STOPPED[info.stopped_by]
    note = "; ".join(filter(None, (stopped, info.note, *info.given)))
    found = [Fact("restricted", *_restriction(text), "over") for text in info.restrictions]
    found.append(Fact("status", info.standing, note, info.shown_as))
    if info.objective is not None:
        found.append(
            Fact(info.objective_kind, show_cost(info.objective, unit), MEANING[info.objective_kind])
        )
    found += _proof(info)
    for place in (place for place in info.fullest if place.used):
        share = show_share(place.used, place.capacity)
        note, style = f"{place.at}: {place.room(unit)}", "over" if place.over else ""
        found.append(Fact(f"fullest {memory_name(place.resource).upper()}", share, note, style))
    found.append(Fact("solved in", show_seconds(info.seconds), info.formulation))
    return found


def _restriction(text: str) -> tuple[str, str]:
    key, _, demand = text.partition(": ")
    return key, shorten(demand, MOST_OF_A_RESTRICTION)


def _proof(info: VerdictInfo) -> list[Fact]:
    """What is certified, then what a solver proved beyond it."""
    unit, how = info.time_unit, "in integers" if info.bound_exact else "in floating point"
    word = f"{info.bound_method}, {how}"
    if info.certified_infeasible:
        return [Fact("certified", "no plan exists", "verify re-derives it")]
    if info.status == "infeasible":
        return [Fact("certified", "nothing", ""), Fact("proved", "no plan exists", word)]
    found = []
    if info.objective is not None:
        saved = "the most that another plan can save; verify re-derives it"
        note = "no plan is better" if info.certified_optimal else saved
        note = "nothing is certified" if info.certified_gap is None else note
        found.append(Fact("certified gap", show_gap(info.certified_gap), note))
    if info.certified_bound is not None:
        shown = show_cost(info.certified_bound, unit)
        found.append(Fact("certified bound", shown, "verify re-derives it"))
    if info.bound is None or info.all_certified:
        return found
    if info.objective is not None:
        most = f"the most that another plan can save, on the word of {info.bound_method}"
        note = "no plan is better" if info.proved else most
        found.append(Fact("gap", show_gap(info.gap), note))
    return [*found, Fact("proved bound", show_cost(info.bound, unit), word)]


def memory_section(info: ReportInfo) -> Section | None:
    """Stacks or a heat map for every memory in use."""
    if info.memory is None:
        return None
    parts: list[Part] = []
    keys: dict[str, str] = {}
    unused: list[str] = []
    for tier in info.memory.shown:
        if not any(map(sum, tier.used)):
            unused.append(f" No {memory_name(tier.resource).upper()} is in use.")
            continue
        drawing = memory_svg(info.memory, tier, info.verdict.time_unit)
        parts.append(Part(drawing.title, drawing.render(), drawing.about))
        keys |= {} if folds(tier) else {tier.style(part): tier.kind(part) for part in tier.parts}
    if not parts:
        return None
    text = f"Use of every place against its capacity.{''.join(unused)}"
    if info.held is not None:
        text = (
            "Every place's whole memory at the fullest moment of a step. The line is what may be "
            f"used; the headroom beyond it must stay free.{''.join(unused)}"
        )
        keys |= {"kept": "headroom"} if keys else {}
        parts += [Part(table=held_grid(info.held.ledger, *each)) for each in info.held.memories]
    shown = [Key(style, name) for style, name in keys.items()]
    points = () if info.held is None else tuple(map(sentence, notes(info.held)))
    return Section("memory", "Memory", text, (*shown, Key("room", "free")) if shown else (),
                   tuple(parts), points)  # fmt: skip


def time_section(info: ReportInfo) -> Section | None:
    """The timeline, then every rank as a table."""
    if info.ranks is None or not any(info.ranks.barriers):
        return None
    ranks = info.ranks
    drawing = timeline_svg(ranks)
    shown = ""
    if len(ranks.rows) > MOST_RANKS:
        shown = f" Drawn: the {MOST_RANKS} busiest ranks, and those that set a barrier."
    text = (
        "The embedding part of a step, with a barrier after each phase and no overlap: a phase "
        f"lasts as long as its slowest rank.{shown}"
    )
    if ranks.hidden:
        text = (
            "What embeddings add to the dense part of a step. Drawn of each phase is the time "
            f"that nothing hides.{shown} {_hides(ranks)}"
        )
    keys = tuple(
        Key(f"p{i % 6}", f"{name} {show_cost(ranks.barriers[i], ranks.time_unit)}")
        for i, name in enumerate(ranks.phases)
        if ranks.barriers[i]
    )
    more = (Key("p0 waits", "pale: others are slower"), Key("room", "waiting"))
    parts = [Part("", drawing.render(), drawing.about), Part(table=rank_page(ranks))]
    points = list(info.uneven)
    if info.origins is not None:
        parts.append(Part(table=origins_grid(info.origins)))
        points = [*map(sentence, told(info.origins)), *points]
    return Section("time", "Time", text, (*keys, *more), tuple(parts), tuple(points))


def _hides(info: RanksInfo) -> str:
    """What the dense part hides, in one sentence."""
    pairs = zip(info.phases, info.hidden, strict=True)
    found = [f"{show_cost(time, info.time_unit)} of {name}" for name, time in pairs if time]
    return f"The dense part hides up to {', '.join(found)}." if found else "Nothing is hidden."


def _goals_section(info: VerdictInfo) -> Section | None:
    if not info.after:
        return None
    text = (
        "Goals in order. Least: no plan that is as good in the objective and in all earlier "
        "goals has less. Open: a longer search may find less."
    )
    return Section("goals", "After the objective", text, points=tuple(map(sentence, info.after)))


def _modes_section(info: ReportInfo) -> Section | None:
    if info.modes is None or not info.modes.cells:
        return None
    unit = info.verdict.time_unit
    memories = (f"#{name.upper()}" for name in per_memory(info.modes.cells[0].used))
    grid = Grid.of(
        "modes-cells",
        "modes",
        "Tables and bytes in every mode at every ratio",
        ("mode", "cache ratio", "#tables", *memories, "which"),
        [
            (
                cell.mode,
                cell.ratio or UNKNOWN,
                Cell.count(len(cell.tables)),
                *(Cell.amount(held, unit) for held in per_memory(cell.used).values()),
                ", ".join(cell.tables[:6]) + (" …" if len(cell.tables) > 6 else ""),
            )
            for cell in info.modes.cells
        ],
    ).filled()
    return Section("modes", "Modes and cache ratios", parts=(Part(table=grid),))


def _tables_section(info: ReportInfo) -> Section | None:
    if info.tables is None:
        return None
    text = "Time is the largest sum of a table's shards on one rank."
    return Section("tables", "Tables", text, parts=(Part(table=table_grid(info.tables)),))


def _trace_section(info: ReportInfo) -> Section | None:
    drawing = draw_trace(info.trace, info.verdict.seconds, info.verdict.time_unit)
    if drawing is None:
        return None
    keys = (Key("mark objective", "best plan so far"), Key("mark bound", "proved bound"))
    text = f"What {info.verdict.formulation} knew at each moment."
    return Section("search", "Search", text, keys, (Part("", drawing.render(), drawing.about),))


def report(plan: Plan, path: str | Path | None = None, answers: Answers | None = None) -> str:
    """Write a plan as one self-contained HTML page.

    Parameters
    ----------
    plan : Plan
    path : optional
        Where the page is written (atomically).
    answers : Answers, optional
        The result of :func:`milp_planner.explain`, to be drawn on the page as well.

    Returns
    -------
    str
        The page.
    """
    page = render(report_of(plan, answers))
    if path is not None:
        write_atomically(path, page)
    return page
