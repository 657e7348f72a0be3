"""The way from a plan to start from to another: what its first moves gain, and when it pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from formulations import Instance, Placement
from formulations.result.check import check, compute_loads, moved_tables
from formulations.result.outcome import StoppedBy, found
from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.units import (
    UNKNOWN,
    listed,
    show_amount,
    show_cost,
    show_ranks,
    show_time,
)
from milp_planner.errors import BadInput
from milp_planner.features.moves.order import Migration, migration
from milp_planner.files import Facts
from milp_planner.inputs.interconnect import Interconnect
from milp_planner.plans.compile import Compiled, as_current
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing.units import PICOSECONDS
from milp_planner.start.mapping import placed_on, start_on
from milp_planner.start.rows import StartSource

#: The effect is shown after these numbers of moves.
FIRST_MOVES = (1, 5, 20, 100)
#: Most moves that a terminal lists; the rest are only counted.
MOST_LISTED = 20


@dataclass(frozen=True)
class MovesPoint:
    """The state after some number of moves."""

    moves: int
    tables: int
    bytes: int
    """Moves made so far, the tables they moved, and the bytes they transferred."""
    objective: int


@dataclass(frozen=True)
class MovedTable:
    """A table that the plan to start from has elsewhere."""

    table: str
    before: str
    after: str
    """Its option in the plan to start from and in this one."""
    ranks_before: tuple[int, ...]
    ranks_after: tuple[int, ...]


@dataclass(frozen=True)
class MovesInfo(Facts):
    """The moves from a plan to start from to this one."""

    objective_kind: str
    time_unit: str
    fits: bool
    """Whether the plan to start from fits; if not, no sequence of moves leads from it."""
    before: int
    after: int
    """Objective of the plan to start from and of this one."""
    points: tuple[MovesPoint, ...]
    """One point after every move that leaves a feasible plan; the first is the start."""
    way: Migration | None
    """The moves, in an order that never exceeds a capacity; None if the start does not fit."""
    tables: tuple[MovedTable, ...]
    """Every table that moves, including those for which ``way`` has no order."""
    move_seconds: float | None
    """Lower bound: ``receives``, divided by a link's bandwidth. None if the cluster describes no
    link."""
    pays_after_steps: int | None
    """Fewest steps until the gain makes up for that time; None if it never does, or if unknown."""
    receives: int = 0
    """The most bytes that one rank must receive: of every table, those that it holds beyond the
    bytes it holds today."""

    @property
    def told(self) -> tuple[MovesPoint, ...]:
        """The points after 1, 5, 20, 100 and all moves."""
        counts = {*FIRST_MOVES, self.points[-1].moves if self.points else 0} - {0}
        return tuple(p for p in self.points if p.moves in counts)

    def share(self, point: MovesPoint) -> float | None:
        """Share of the total gain reached at a point; None where there is no gain."""
        gain = self.before - self.after
        return (self.before - point.objective) / gain if gain > 0 else None


@dataclass(frozen=True)
class PlansOnTheWay(Sequence[Plan]):
    """The feasible plans after one, two, … moves, each built on access."""

    placements: Sequence[Placement]
    make: Callable[[Placement], Plan]

    def __len__(self) -> int:
        """The number of plans."""
        return len(self.placements)

    def __getitem__(self, at: Any) -> Any:
        """One plan, or a list for a slice."""
        if isinstance(at, slice):
            return [self.make(placement) for placement in self.placements[at]]
        return self.make(self.placements[at])


def moves(plan: Plan, start: StartSource) -> tuple[MovesInfo, PlansOnTheWay]:
    """What the first moves from a plan to this one gain, and the plans after the moves.

    ``start`` is what :func:`milp_planner.audit` takes. Tables that it does not have are new, and
    start where this plan places them. BadInput where it does not belong to this model and cluster.
    """
    kind = plan.instance.objective.value
    inputs = (plan.model, plan.cluster, kind)
    first = start_on(start, *inputs, exact=True, later=plan)
    compiled, known = first.compiled, first.placement
    after = placed_on(compiled, plan)
    if after is None:
        raise BadInput("explain moves: the plan has options that its model no longer offers")
    links = compiled.cluster.interconnect
    info, placements = moves_of(compiled.instance, known, after, links)
    shipped = [placements[point.moves - 1] for point in info.points[1:]]
    return info, PlansOnTheWay(shipped, partial(_step, plan, compiled))


def moves_of(
    instance: Instance, before: Placement, after: Placement, links: Interconnect | None = None
) -> tuple[MovesInfo, list[Placement]]:
    """The same as :func:`moves`, between two placements of one Instance."""
    kind = instance.objective.value
    now, then = check(instance, before), check(instance, after)
    start, end = now.objectives[kind], then.objectives[kind]
    changed = moved_tables(replace(instance, current=as_current(before)), after)
    moved = tuple(_moved(instance, before, after, table) for table in changed)
    received = _received(instance, before, after, changed)
    seconds = received / links.intra_machine if received and links else None if received else 0.0
    cost = (moved, seconds, _pays(start - end, seconds, instance.time_unit), received)
    if not now.feasible:
        return MovesInfo(kind, instance.time_unit, False, start, end, (), None, *cost), []
    way, placements = migration(instance, before, after)
    sizes = accumulate(move.bytes for move in way.moves)
    tables = accumulate(len(move.tables) for move in way.moves)
    points = [MovesPoint(0, 0, 0, start)]
    points += [
        MovesPoint(count, moved, size, move.objective)
        for count, (move, moved, size) in enumerate(zip(way.moves, tables, sizes, strict=True), 1)
        if move.objective is not None
    ]
    info = MovesInfo(kind, instance.time_unit, True, start, end, tuple(points), way, *cost)
    return info, placements


def _moved(instance: Instance, before: Placement, after: Placement, table: int) -> MovedTable:
    ends = (before, after)
    options = [instance.option_names[place.options[table]] for place in ends]
    ranks = [tuple(r for block in place.to_lists(table) for r in block) for place in ends]
    return MovedTable(instance.table_names[table], *options, *ranks)


def _received(instance: Instance, before: Placement, after: Placement, moved: Sequence[int]) -> int:
    """The most bytes that one rank receives, if what it holds today is all of use to it."""
    counted = replace(instance, phases=("bytes",), shard_cost=instance.shard_move[:, None])
    received = np.zeros(instance.num_ranks, dtype=np.int64)
    for table in moved:
        now, then = (compute_loads(counted, each, [table]).cost[:, 0] for each in (before, after))
        received += np.maximum(0, then - now)
    return int(received.max(initial=0))


def _pays(gain: int, seconds: float | None, unit: str) -> int | None:
    if gain <= 0 or seconds is None or unit != "ps":
        return None
    return math.ceil(seconds * PICOSECONDS / gain)


def _step(plan: Plan, compiled: Compiled, placement: Placement) -> Plan:
    """The plan of an intermediate placement; it claims no bound, as options are added."""
    outcome = found(compiled.instance, plan.outcome.formulation, placement, StoppedBy.EXHAUSTED)
    return decode(compiled.options, compiled.instance, outcome)


def draw_moves(info: MovesInfo, everything: bool = False) -> RenderableType:
    """A summary after the first moves, then the moves themselves."""
    parts: list[RenderableType] = []
    if info.way is not None and info.way.moves:
        parts += [told_grid(info), *_first(moves_grid(info), everything)]
    if info.tables:
        parts += _first(tables_grid(info), everything)
    return headed(moves_text(info), *parts, *notes(info))


def _first(grid: Grid, everything: bool) -> Iterator[RenderableType]:
    """The first ``MOST_LISTED`` rows (or all), and how many more there are."""
    hidden = 0 if everything else max(0, len(grid.rows) - MOST_LISTED)
    yield grid.first(len(grid.rows) - hidden)
    if hidden:
        yield Text(f"… and {hidden} more (--all shows them)")


def told_grid(info: MovesInfo) -> Grid:
    """The gain after 1, 5, 20, 100 and all moves."""
    head = ("#moves", "#tables", "#bytes", f"#{info.objective_kind}", "#of the gain")
    caption = "What the first moves gain"
    return Grid.of("moves-told", "moves", caption, head, moves_rows(info))


def moves_grid(info: MovesInfo) -> Grid:
    """Every move."""
    assert info.way is not None
    rows = [
        (
            Cell.count(number),
            ", ".join(move.tables),
            Cell.amount(move.bytes, info.time_unit),
            Cell.cost(move.objective, info.time_unit),
        )
        for number, move in enumerate(info.way.moves, start=1)
    ]
    caption = "In an order that exceeds no capacity while a table is held at both ends"
    head = ("#move", "tables", "#bytes", "#then")
    return Grid.of("moves-all", "moves", caption, head, rows, {"tables": 20})


def tables_grid(info: MovesInfo) -> Grid:
    """Every table that moves: its old and new option and ranks."""
    rows = [
        (t.table, t.before, show_ranks(t.ranks_before, -1), t.after, show_ranks(t.ranks_after, -1))
        for t in info.tables
    ]
    least = {"ranks before": 12, "ranks after": 11, "before": 18, "after": 18, "table": 12}
    head = ("table", "before", "ranks before", "after", "ranks after")
    return Grid.of("moves-tables", "tables", "Where each is before and after", head, rows, least)


def moves_text(info: MovesInfo) -> str:
    """The objective before and after."""
    before, after = (show_cost(v, info.time_unit) for v in (info.before, info.after))
    if not info.fits:
        return f"moves: today's plan ({before}) does not fit, so no moves lead from it"
    return f"moves: {info.objective_kind} {before} today → {after}"


def notes(info: MovesInfo) -> Iterator[str]:
    """Which tables cannot move, and when the moves have paid for themselves."""
    if info.way is not None and info.way.stuck:
        yield stuck_text(info.way.stuck)
    if not info.tables:
        return
    if info.before <= info.after:
        yield "moving never pays by time alone"
    elif info.pays_after_steps is None or info.move_seconds is None:
        yield "how long the move takes is not known"
    elif info.move_seconds == 0:
        yield "no rank receives bytes that it does not already hold"
    else:
        takes = show_time(round(info.move_seconds * PICOSECONDS))
        steps = f"{info.pays_after_steps:,} step{'' if info.pays_after_steps == 1 else 's'}"
        size = show_amount(info.receives, info.time_unit)
        stuck = info.way is not None and info.way.stuck
        rest = " (the tables that cannot move on their own take a restart on top)" if stuck else ""
        yield (
            f"one rank receives {size}, so moving takes at least {takes}{rest}, paid back after at "
            f"least {steps}"
        )


def moves_rows(info: MovesInfo) -> list[list[str]]:
    """The rows of :func:`told_grid`."""
    shares = [info.share(point) for point in info.told]
    return [
        [f"{point.moves:,}", f"{point.tables:,}", show_amount(point.bytes, info.time_unit),
         show_cost(point.objective, info.time_unit), UNKNOWN if share is None else f"{share:.0%}"]
        for point, share in zip(info.told, shares, strict=True)
    ]  # fmt: skip


def stuck_text(tables: Sequence[str], most: int = 5) -> str:
    """The tables for which no order was found."""
    names = listed(tables, most)
    return f"cannot move on their own, as memory does not hold old and new at once: {names}"
