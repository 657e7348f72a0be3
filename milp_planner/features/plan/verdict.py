"""The verdict strip: status, objective, bound, gap, the tightest places, seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from rich.panel import Panel
from rich.text import Text

from formulations import Instance, Outcome
from formulations.instance.restrictions import restrictions
from formulations.result.check import check, missing_tables, moved_bytes, moved_tables
from formulations.result.grounds import grounds
from formulations.result.outcome import GoalReached, certified_gap, standing
from formulations.result.placement import current_plan
from milp_planner.drawing.charts import WIDTH, Drawing, Scale
from milp_planner.drawing.units import (
    MOST_OF_A_RESTRICTION,
    listed,
    memory_name,
    shorten,
    show_amount,
    show_cost,
    show_gap,
    show_seconds,
    show_share,
    show_time,
    time_unit,
)
from milp_planner.features.plan.goals import forced_told, given_up, goals_told
from milp_planner.features.plan.ranks import RankRow, RanksInfo
from milp_planner.features.plan.use import Use, Uses, by_memory, uses_of, whole_uses
from milp_planner.files import Facts
from milp_planner.plans.ledger import LedgerInfo

MEANING = {
    "step_time": "the embedding part of a step, barriers between phases, no overlap",
    "pipelined_step": "what embeddings add to the dense part of a step, with overlap",
    "busiest_rank": "the largest sum of costs on one rank",
    "total": "the sum of costs over everything",
}

#: Why a solve ended, in words; a proof needs none.
STOPPED = {
    "proof": "",
    "time_limit": "stopped by the time limit",
    "work_limit": "stopped by the work limit",
    "exhausted": "the search had no more to try",
    "interrupted": "interrupted",
    "gap": "stopped at the gap asked for",
}


#: Share of a call's seconds from which on a stage is told.
TOLD = 0.05


@dataclass(frozen=True)
class VerdictInfo(Facts):
    """What was found and what is known about it; None means unknown, never 0."""

    status: str
    standing: str
    """The status in words, including what is certified: ``certified optimal``."""
    stopped_by: str
    formulation: str
    objective_kind: str
    """``total``, ``busiest_rank``, ``step_time`` or ``pipelined_step``."""
    objective: int | None
    bound: int | None
    bound_method: str | None
    """What derived the bound; ``bound_exact`` says whether in integers or floating point."""
    bound_exact: bool | None
    certified_bound: int | None
    """In the instance's time unit."""
    certified_infeasible: bool
    """Whether a certificate proves that no plan exists."""
    certified_gap: float | None
    gap: float | None
    """(objective − bound)/max(1, |objective|), of the certified bound and of ``bound``."""
    objectives: dict[str, int]
    """The plan under all objectives that its instance defines; empty without one."""
    time_unit: str
    tightest: tuple[Use, ...]
    """One for each resource that limits anything."""
    seconds: float
    note: str
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage of the call."""
    today: int | None = None
    """Objective of the plan in production; None if there is none, or if it no longer fits."""
    missing: tuple[str, ...] = ()
    """New tables, if the plan in production lacks only these and its own tables still fit."""
    moved_tables: int | None = None
    moved_bytes: int | None = None
    """Tables and bytes to move from the plan in production; None if there is none, or no plan."""
    goals: tuple[GoalReached, ...] = ()
    """What the plan reaches of its secondary goals."""
    before_goals: int | None = None
    """Objective of the best plan, if this one gave up some of it for a goal."""
    grounds: tuple[str, ...] = ()
    """What the certified bound counts beyond even ranks, in words."""
    restrictions: tuple[str, ...] = ()
    """Demands of the instance beyond model and cluster; all claims hold only under them."""
    forced: tuple[str, ...] = ()
    """What must move at least from an earlier plan, in words."""

    @property
    def certified_optimal(self) -> bool:
        """Whether the certified bound equals the objective."""
        return self.objective is not None and self.certified_bound == self.objective

    @property
    def all_certified(self) -> bool:
        """Whether every claim is certified."""
        if self.objective is None and self.bound is None:
            return self.certified_infeasible
        return self.certified_bound is not None and self.bound == self.certified_bound

    @property
    def proved(self) -> bool:
        """Whether the plan is optimal: a bound derived in integers equals the objective."""
        return self.status == "optimal"

    @property
    def proved_before_goals(self) -> bool:
        """Whether the best plan was proved optimal before some of it was given up for goals."""
        same = self.before_goals is not None and self.before_goals == self.bound
        return same and bool(self.bound_exact)

    @property
    def shown_as(self) -> str:
        """The status that sets the colour: also optimal if only goals made the plan worse."""
        return "optimal" if self.proved_before_goals else self.status

    @property
    def given(self) -> list[str]:
        """What was given up for the secondary goals, in words."""
        proved = self.proved_before_goals
        return given_up(self.objective, self.before_goals, proved, self.time_unit)

    @property
    def after(self) -> list[str]:
        """The secondary goals, each in words."""
        return goals_told(self.goals, self.time_unit)

    @property
    def fullest(self) -> tuple[Use, ...]:
        """The tightest place of each memory, however many resources limit it."""
        return tuple(by_memory(self.tightest).values())


def verdict_of(
    instance: Instance, outcome: Outcome, ledger: LedgerInfo | None = None
) -> VerdictInfo:
    """Summarise an Outcome of an Instance; with a ledger, memories are whole memories."""
    source, plan, now = outcome.bound_source, outcome.placement, current_plan(instance)
    today, stages = None if now is None else check(instance, now), outcome.detail.get("stages")
    moved = None if plan is None or not instance.current else moved_tables(instance, plan)
    loads = None if plan is None else check(instance, plan).loads
    uses: Uses = () if loads is None else uses_of(instance, loads)
    if ledger is not None:
        uses = whole_uses(ledger)
    return VerdictInfo(
        status=outcome.status.value,
        standing=standing(outcome),
        stopped_by=outcome.stopped_by.value,
        formulation=outcome.formulation,
        objective_kind=instance.objective.value,
        objective=outcome.objective,
        bound=outcome.bound,
        bound_method=None if source is None else source.method,
        bound_exact=None if source is None else source.exact,
        certified_bound=outcome.certified_bound,
        certified_infeasible=outcome.certified_infeasible,
        certified_gap=certified_gap(outcome),
        gap=outcome.gap,
        objectives=dict(outcome.objectives),
        time_unit=instance.time_unit,
        tightest=tuple(  # of a whole memory, the place with the least room
            max(places, key=lambda use: use.share if ledger is None else -use.headroom)
            for places in uses
            if any(use.capacity or use.used for use in places)
        ),
        seconds=outcome.seconds,
        note=outcome.note,
        stages=dict(stages) if isinstance(stages, dict) else {},
        today=today.objectives[instance.objective.value] if today and today.feasible else None,
        missing=tuple(missing_tables(instance)),
        moved_tables=None if moved is None else len(moved),
        moved_bytes=None if plan is None or moved is None else moved_bytes(instance, plan, moved),
        goals=outcome.goals,
        before_goals=outcome.before_goals,
        grounds=() if outcome.certificate is None else grounds(outcome.certificate),
        restrictions=restrictions(instance),
        forced=tuple(forced_told(instance, outcome)),
    )


COLOUR = {"optimal": "green", "feasible": "yellow", "infeasible": "red", "unknown": "red"}


def draw_verdict(info: VerdictInfo, title: str = "") -> Panel:
    """A strip of a few lines: status, objective, bound, gap, tightest places, seconds."""
    colour = COLOUR[info.shown_as]
    lines = [*restricted(info.restrictions), _headline(info, colour)]
    lines += [*map(Text, (*_proof(info), *_since(info)))]
    lines += [_tightest(place, info.time_unit) for place in info.fullest]
    lines += map(Text, info.given)
    if info.after:
        lines.append(Text(f"after that: {', '.join(info.after)}"))
    if info.note:
        lines.append(Text(info.note, style="dim"))
    if info.objective is not None:
        meaning = f"{info.objective_kind}: {MEANING[info.objective_kind]}"
        lines.append(Text(meaning, style="dim"))
    head, body = Text(title) if title else None, Text("\n").join(lines)
    return Panel(body, title=head, title_align="left", border_style=colour, width=100)


def restricted(restrictions: Sequence[str]) -> list[Text]:
    """One line per restriction, shortened if it names many tables."""
    return [
        Text(f"restricted: {shorten(text, MOST_OF_A_RESTRICTION)}", style="bold yellow")
        for text in restrictions
    ]


def _headline(info: VerdictInfo, colour: str) -> Text:
    word = re.split(",| but for", info.standing, maxsplit=1)[0]
    rest = info.standing.removeprefix(word)
    text = Text(word.upper(), style=f"bold {colour}").append(rest, "default")
    if info.objective is not None:
        text.append(f"\n{info.objective_kind} {_cost(info, info.objective)}", "bold")
        if not info.certified_optimal:
            text.append(f"   gap {show_gap(info.gap)}   bound {_cost(info, info.bound)}")
    text.append(f"   {info.formulation}, {show_seconds(info.seconds)}", "default")
    return text


def _proof(info: VerdictInfo) -> list[str]:
    """What is certified, then what a solver proved beyond it, in words."""
    lines = []
    if STOPPED[info.stopped_by] and not info.proved_before_goals:
        lines.append(STOPPED[info.stopped_by] + _spent(info))
    if info.certified_infeasible:
        lines.append("certified: no plan exists; verify re-derives it")
    elif info.certified_optimal:
        lines.append("certified: no plan is better; verify re-derives it")
    elif info.certified_bound is not None:
        bound = _cost(info, info.certified_bound)
        lines.append(f"certified: no plan is below {bound}; verify re-derives it")
        if info.grounds:
            lines.append(f"that bound counts {', '.join(info.grounds)}")
    lines += info.forced
    if info.bound_method is not None and not info.all_certified:
        how = "in integers" if info.bound_exact else "in floating point"
        what = f"no plan is below {_cost(info, info.bound)}"
        if info.status == "infeasible":
            what = "no plan exists"
        elif info.proved:
            what = "no plan is better"
        lines.append(f"proved: {what} ({info.bound_method}, {how})")
    if info.status == "infeasible" and not info.certified_infeasible:
        lines.append("not certified: no proof tree closed, so it is the solver's word")
    return lines


def _spent(info: VerdictInfo) -> str:
    """The stages that the time went to, unless the search took nearly all of it."""
    long = {name: value for name, value in info.stages.items() if value >= TOLD * info.seconds}
    if not long.keys() - {"search"}:
        return ""
    return ": " + ", ".join(f"{show_seconds(value)} of {name}" for name, value in long.items())


def _since(info: VerdictInfo) -> list[str]:
    """The change from the plan in production."""
    if info.moved_tables is None:
        return []
    size = show_amount(info.moved_bytes, info.time_unit)
    now = "does not fit" if info.today is None else _cost(info, info.today)
    if info.missing:
        one = len(info.missing) == 1
        now = f"{listed(info.missing, 3)} {'is' if one else 'are'} missing, all else fits"
    tables = f"{info.moved_tables:,} table{'s' * (info.moved_tables != 1)}"
    return [f"today: {now}; to move: {tables}, {size}"]


def _cost(info: VerdictInfo, value: int | None) -> str:
    return show_cost(value, info.time_unit, digits=6)


def _tightest(place: Use, unit: str) -> Text:
    text = Text(f"tightest {memory_name(place.resource)}: {place.at}, ")
    text.append(f"{show_amount(place.used, unit)} of {show_amount(place.capacity, unit)}")
    text.append(f" ({show_share(place.used, place.capacity)}), ")
    return text.append(place.room(unit), "bold red" if place.over else "default")


#: Most ranks to draw; of more, the busiest and those that set a barrier.
MOST_RANKS = 32
_LEFT, _RIGHT, _TOP, _ROW = 84, 150, 8, 22.0


def timeline_svg(info: RanksInfo) -> Drawing:
    """One row per rank: full colour where the rank sets the barrier, pale where it waits."""
    rows = info.rows if len(info.rows) <= MOST_RANKS else info.busiest(MOST_RANKS)
    total = sum(info.exposed)
    most = max(row.cost for row in info.rows)
    slowest = [row.rank for row in info.rows if row.cost == most]
    also = f" and {len(slowest) - 1} more" if len(slowest) > 1 else ""
    about = (
        f"{'Pipelined step' if info.hidden else 'Step time'} "
        f"{show_cost(total, info.time_unit)}. Busiest: rank {slowest[0]}{also} "
        f"with {show_cost(most, info.time_unit)} of work."
    )
    foot = _TOP + _ROW * len(rows)
    what = "that nothing hides" if info.hidden else "with barriers"
    drawing = Drawing(f"Time of each rank in each phase, {what}", about, foot + 44)
    across = Scale(0, max(1, total), _LEFT, WIDTH - _RIGHT)
    edges = [0, *accumulate(info.exposed)]
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
        if not (shows := info.shown(phase, value)):
            continue
        critical = row.critical[phase]
        tip = f"rank {row.rank}, {info.phases[phase]}: {show_cost(value, info.time_unit)}"
        x = across.at(edges[phase])
        drawing.rect(
            x, y + 2, across.at(edges[phase] + shows) - x, _ROW - 5,
            f"p{phase % 6}" + ("" if critical else " waits"),
            tip + (" (slowest)" if critical else ""),
        )  # fmt: skip
    words = show_cost(row.cost, info.time_unit) + (" busiest" if busiest else "")
    drawing.text(WIDTH - _RIGHT + 10, y + 15, words, "start", style)
