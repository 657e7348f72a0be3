"""What the first moves from today's plan bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from formulations import Instance, Placement
from formulations.result.check import check
from formulations.result.outcome import StoppedBy, found
from milp_planner.drawing.page import Cell, Grid, Values, columns, draw_grid, rows
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost
from milp_planner.errors import BadInput
from milp_planner.features.plan.migration import Migration, migration
from milp_planner.files import Facts
from milp_planner.plans.compile import Compiled, regrouped
from milp_planner.plans.placement import Plan, decode
from milp_planner.today.matching import compile_today
from milp_planner.today.rows import TodaySource


def carried(plan: Plan, instance: Instance) -> Placement | None:
    """A plan's choices on another Instance; None where they do not belong to it."""
    if set(instance.table_names) - {table.name for table in plan.tables}:
        return None
    options, ranks = [], []
    for index, name in enumerate(instance.table_names):
        placed = plan.table(name)
        try:
            options.append(instance.option_index(index, placed.option))
        except KeyError:
            return None
        several = len(instance.blocks_of(options[-1])) > 1
        ranks.append(
            [np.asarray(block, dtype=np.int64) for block in regrouped(placed.ranks, several)]
        )
    found = Placement(np.asarray(options, dtype=np.int64), ranks)
    return found if check(instance, found).objectives else None


#: Numbers of moves whose effect is shown.
FIRST = (1, 5, 20, 100)
#: Moves listed on a terminal before the rest is counted.
MOST = 20


@dataclass(frozen=True)
class MovesPoint:
    """After so many moves."""

    moves: int
    tables: int
    bytes: int
    """Made, tables in them, and what travelled."""
    objective: int


@dataclass(frozen=True)
class MovesInfo(Facts):
    """The way from today's plan to this one."""

    objective_kind: str
    time_unit: str
    fits: bool
    """Whether today's plan does; without that there is no way from it."""
    before: int
    after: int
    """Objective of today's plan and of this one."""
    points: tuple[MovesPoint, ...]
    """After every move at which the plan keeps all rules; the first is today's plan."""
    way: Migration | None
    """The moves, in an order that never exceeds a capacity; None where today's plan does not fit.
    """

    @property
    def told(self) -> tuple[MovesPoint, ...]:
        """After 1, 5, 20 and 100 moves, and after all of them."""
        counts = {*FIRST, self.points[-1].moves if self.points else 0} - {0}
        return tuple(p for p in self.points if p.moves in counts)

    def share(self, point: MovesPoint) -> float | None:
        """Of the gain that is there by then; None where there is none to gain."""
        gain = self.before - self.after
        return (self.before - point.objective) / gain if gain > 0 else None


@dataclass(frozen=True)
class PlansOnTheWay(Sequence[Plan]):
    """Plans after the first, the second, … move, each made when it is asked for."""

    placements: Sequence[Placement]
    make: Callable[[Placement], Plan]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.placements)

    def __getitem__(self, at: Any) -> Any:
        """One plan, or a list of some."""
        if isinstance(at, slice):
            return [self.make(placement) for placement in self.placements[at]]
        return self.make(self.placements[at])


def moves(plan: Plan, today: TodaySource) -> tuple[MovesInfo, PlansOnTheWay]:
    """What the first moves from today's plan to this one bring.

    Parameters
    ----------
    plan : Plan
        To change to.
    today
        What :func:`milp_planner.audit` takes.

    Returns
    -------
    (MovesInfo, PlansOnTheWay)
        The plan at every point but the first: to be saved and exported.

    Raises
    ------
    BadInput, InstanceError
        For a malformed plan of today, or one that does not belong to this plan's tables.
    """
    kind = plan.instance.objective.value
    compiled, known = compile_today(today, plan.model, plan.cluster, kind)
    after = carried(plan, compiled.instance)
    if after is None:
        raise BadInput("explain moves: the plan has options that its model no longer offers")
    info, placements = moves_of(compiled.instance, known.placement, after)
    shipped = [placements[point.moves - 1] for point in info.points[1:]]
    return info, PlansOnTheWay(shipped, partial(_step, plan, compiled))


def moves_of(
    instance: Instance, before: Placement, after: Placement
) -> tuple[MovesInfo, list[Placement]]:
    """The same between two placements of one Instance."""
    kind = instance.objective.value
    now, then = check(instance, before), check(instance, after)
    start, end = now.objectives[kind], then.objectives[kind]
    if not now.feasible:
        return MovesInfo(kind, instance.time_unit, False, start, end, (), None), []
    way, placements = migration(instance, before, after)
    sizes = accumulate(move.bytes for move in way.moves)
    tables = accumulate(len(move.tables) for move in way.moves)
    points = [MovesPoint(0, 0, 0, start)]
    points += [
        MovesPoint(count, moved, size, move.objective)
        for count, (move, moved, size) in enumerate(zip(way.moves, tables, sizes, strict=True), 1)
        if move.objective is not None
    ]
    return MovesInfo(kind, instance.time_unit, True, start, end, tuple(points), way), placements


def _step(plan: Plan, compiled: Compiled, placement: Placement) -> Plan:
    """The plan of a placement on the way; no bound is claimed, as today's options are added."""
    outcome = found(compiled.instance, plan.outcome.formulation, placement, StoppedBy.EXHAUSTED)
    return decode(compiled.options, compiled.instance, outcome)


def draw_moves(info: MovesInfo, everything: bool = False) -> RenderableType:
    """What the first moves bring, then the moves themselves."""
    title = Text(moves_text(info), style="bold")
    if info.way is None:
        return title
    stuck = [Text(stuck_text(info.way.stuck))] if info.way.stuck else []
    if not info.way.moves:
        return Group(title, *stuck)
    every = moves_grid(info)
    hidden = 0 if everything else max(0, len(every.rows) - MOST)
    shown = replace(every, rows=every.rows[: len(every.rows) - hidden])
    more = [Text(f"… and {hidden} more (--all shows them)")] if hidden else []
    return Group(title, draw_grid(told_grid(info)), draw_grid(shown, {"tables": 20}), *more, *stuck)


def told_grid(info: MovesInfo) -> Grid:
    """What is there after 1, 5, 20, 100 and all moves."""
    head = columns("#moves", "#tables", "#bytes", f"#{info.objective_kind}", "#of the gain")
    told: Values = [list(row) for row in moves_rows(info)]
    return Grid("moves-told", "moves", "What the first moves bring", head, rows(told))


def moves_grid(info: MovesInfo) -> Grid:
    """Every move."""
    assert info.way is not None
    values: Values = [
        [Cell(str(number), number), ", ".join(move.tables),
         Cell(show_amount(move.bytes, info.time_unit), move.bytes),
         Cell(show_cost(move.objective, info.time_unit), move.objective)]
        for number, move in enumerate(info.way.moves, start=1)
    ]  # fmt: skip
    head = columns("#move", "tables", "#bytes", "#then")
    caption = "In an order that exceeds no capacity while a table is held at both ends"
    return Grid("moves-all", "moves", caption, head, rows(values))


def moves_text(info: MovesInfo) -> str:
    """From what to what."""
    before, after = (show_cost(v, info.time_unit) for v in (info.before, info.after))
    if not info.fits:
        return f"moves: today's plan ({before}) does not fit, so there is no way from it"
    return f"moves: {info.objective_kind} {before} today → {after}"


def moves_rows(info: MovesInfo) -> list[list[str]]:
    """A row for 1, 5, 20, 100 and all moves."""
    shares = [info.share(point) for point in info.told]
    return [
        [f"{point.moves:,}", f"{point.tables:,}", show_amount(point.bytes, info.time_unit),
         show_cost(point.objective, info.time_unit), UNKNOWN if share is None else f"{share:.0%}"]
        for point, share in zip(info.told, shares, strict=True)
    ]  # fmt: skip


def stuck_text(tables: Sequence[str], most: int = 5) -> str:
    """Which tables no order was found for."""
    more = f" and {len(tables) - most} more" if len(tables) > most else ""
    return (
        "cannot move on their own, as memory does not hold old and new at once: "
        f"{', '.join(tables[:most])}{more}"
    )
