"""What is known about every division into sharding groups: a table for terminal and page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import RenderableType

from formulations import Instance, Outcome, Placement
from formulations.result.check import compute_loads, moved_bytes
from formulations.result.outcome import gap_between
from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.page import Part, Section, sentence
from milp_planner.drawing.units import show_gap
from milp_planner.files import Facts
from milp_planner.inputs import Cluster
from milp_planner.plans.divisions import best_cost, least_elsewhere, words_of
from milp_planner.plans.placement import Plan
from milp_planner.pricing.options import SYNC


@dataclass(frozen=True)
class DivisionRow:
    """One division."""

    groups: int
    group_ranks: int
    words: str
    chosen: bool
    status: str
    objective: int | None
    """The best known plan's; None if a bound ruled the division out, or if no plan was found."""
    sync: int | None
    """Part of ``objective`` that the slowest rank spends averaging and gathering replicas."""
    stored: int | None
    """Bytes of rows and optimizer state in the whole cluster."""
    certified: int | None
    """Certified lower bound on its plans."""
    gap: float | None
    """Gap between its own plan and bound."""
    refused: str
    """Why it was not priced; else empty."""


@dataclass(frozen=True)
class DivisionsInfo(Facts):
    """All divisions tried, the largest groups first."""

    objective_kind: str
    time_unit: str
    rows: tuple[DivisionRow, ...]
    best: int | None
    """Objective of the best plan, before goals."""
    certified: float | None
    """Certified lower bound on the plans of all divisions; None if one has no certificate."""

    @property
    def gap(self) -> float | None:
        """How much better a plan of any division could be, as a share of the best."""
        return gap_between(self.best, None if self.certified is None else int(self.certified))


def divisions_of(plan: Plan) -> DivisionsInfo | None:
    """The divisions of a plan; None if the plan's division was fixed."""
    divisions = plan.divisions
    if divisions is None:
        return None
    own = _row(plan.cluster, plan.instance, plan.outcome, "", chosen=True)
    others = [_row(o.group, o.instance, o.outcome, o.refused) for o in divisions.others]
    best, mine = best_cost(plan.outcome), plan.outcome.certified_bound
    least = least_elsewhere(divisions)
    certified = None if mine is None or least is None else min(mine, least)
    rows = sorted((own, *others), key=lambda row: -row.group_ranks)
    kind, unit = plan.instance.objective.value, plan.instance.time_unit
    return DivisionsInfo(kind, unit, tuple(rows), best, certified)


def _row(
    group: Cluster,
    instance: Instance | None,
    outcome: Outcome | None,
    refused: str,
    chosen: bool = False,
) -> DivisionRow:
    sync = stored = None
    if instance is not None and outcome is not None and outcome.placement is not None:
        sync = sync_of(instance, outcome.placement)
        tables = [*range(instance.num_tables)]
        stored = group.replicas * moved_bytes(instance, outcome.placement, tables)
    return DivisionRow(
        groups=group.replicas,
        group_ranks=group.num_ranks,
        words=words_of(group),
        chosen=chosen,
        status="refused" if outcome is None else outcome.status.value,
        objective=None if outcome is None else outcome.objective,
        sync=sync,
        stored=stored,
        certified=None if outcome is None else outcome.certified_bound,
        gap=None if outcome is None else gap_between(best_cost(outcome), outcome.certified_bound),
        refused=refused,
    )


def sync_of(instance: Instance, placement: Placement) -> int:
    """Largest time of a rank for averaging and gathering replicas."""
    if SYNC not in instance.phases:
        return 0
    loads = compute_loads(instance, placement).cost
    return int(loads[:, instance.phases.index(SYNC)].max())


def _answer(row: DivisionRow, best: int | None) -> str:
    """The standing of a division, in a word or two."""
    if row.refused:
        return "refused"
    if row.chosen:
        return "chosen"
    if row.status == "infeasible":
        return "no plan"
    if best is not None and row.certified is not None and row.certified >= best:
        return "not better"
    return "open"


def divisions_grid(info: DivisionsInfo) -> Grid:
    """One row per division."""
    head = ("division", f"#{info.objective_kind}", "#sync", "#rows and state", "#certified ≥",
            "#gap", "")  # fmt: skip
    rows = [
        (
            row.words,
            *(
                "" if value is None else Cell.cost(value, info.time_unit)
                for value in (row.objective, row.sync)
            ),
            "" if row.stored is None else Cell.amount(row.stored),
            Cell.cost(row.certified, info.time_unit),
            "" if row.gap is None else Cell.gap(row.gap),
            _answer(row, info.best),
        )
        for row in info.rows
    ]
    return Grid.of("divisions", "divisions", "Sharding groups", head, rows)


def notes(info: DivisionsInfo) -> Iterator[str]:
    """What is certified for all divisions, and why some were not priced."""
    ruled = sum(row.objective is None and not row.refused for row in info.rows)
    if info.gap is None:
        yield "an open division has no certificate: its plans may be better"
    elif info.gap <= 0:
        yield "certified: no plan of any division is better"
    else:
        yield f"certified: no plan of any division is better by more than {show_gap(info.gap)}"
    if ruled:
        yield f"{ruled} of {len(info.rows)} divisions were ruled out by a bound, without a plan"
    for text in dict.fromkeys(row.refused for row in info.rows if row.refused):
        count = sum(row.refused == text for row in info.rows)
        yield f"{count} divisions were refused: {text}"


def draw_divisions(info: DivisionsInfo) -> RenderableType:
    """The table on a terminal."""
    return headed("divisions into sharding groups", divisions_grid(info), *notes(info))


def divisions_section(info: DivisionsInfo | None) -> Section | None:
    """The table on a page."""
    if info is None:
        return None
    text = (
        "Every way to divide the ranks into groups that each hold every table. In the phase sync "
        "replicas are averaged; rows and optimizer state are those of all groups together."
    )
    points = tuple(map(sentence, notes(info)))
    parts = (Part(table=divisions_grid(info)),)
    return Section("divisions", "Sharding groups", text, (), parts, points)
