"""What moves between two plans, and what the first moves from today's plan bring.

In tables and in bytes: what it costs once, and what it gains every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from formulations import Instance, Placement, Where
from formulations.result.check import check, position_entries
from formulations.result.outcome import StoppedBy, found
from formulations.result.placement import same_ranks
from milp_planner.drawing.page import fitting_grid
from milp_planner.drawing.units import UNKNOWN, show_amount, show_cost
from milp_planner.errors import BadInput
from milp_planner.features.plan.migration import Migration, migration
from milp_planner.files import Facts
from milp_planner.plans.compile import Compiled, regrouped
from milp_planner.plans.placement import Plan, decode
from milp_planner.today.matching import compile_today
from milp_planner.today.rows import TodaySource

_PS = 10**12


@dataclass(frozen=True)
class MovedTable:
    """One table that differs."""

    table: str
    change: str
    """``moved`` (another option or other ranks), ``new`` or ``gone``."""
    before: str | None
    after: str | None
    """Options."""
    ranks_before: tuple[tuple[int, ...], ...]
    ranks_after: tuple[tuple[int, ...], ...]
    """Of each block."""
    bytes: int
    """That travel: weights and optimizer state of every shard of the new place, as the move limit
    of an Instance counts them; 0 for tables that are new or gone."""


@dataclass(frozen=True)
class DiffInfo(Facts):
    """From one plan to another, priced as the second is."""

    objective_kind: str
    time_unit: str
    tables: tuple[MovedTable, ...]
    """Only those that differ."""
    same: int
    """How many do not."""
    moved_tables: int
    moved_bytes: int
    """Of the tables in both plans."""
    before: int | None
    after: int | None
    """Objectives on the second plan's Instance; ``before`` is None where the first plan does not
    belong to it (tables, options or ranks are missing)."""
    before_fits: bool | None
    """Whether the first plan is still allowed there; None where it does not belong."""
    gain: int | None
    """``before`` − ``after``, each step."""
    move_seconds: float | None
    """The most bytes that one rank must receive, over its link: a floor. A rank that held some of a
    table before may hold what it needs of it, so it receives nothing of it here. None without a
    described link."""
    pays_after_steps: int | None
    """Least steps until the gain exceeds the time of the move; None when it never does, or that
    time is unknown."""


def diff(before: Plan, after: Plan) -> DiffInfo:
    """Compare two plans table by table.

    Raises
    ------
    BadInput
        When either has no placement.
    """
    for plan, what in ((before, "first"), (after, "second")):
        if plan.outcome.placement is None:
            raise BadInput(f"the {what} plan places nothing, so there is nothing to compare")
    placement = after.outcome.placement
    assert placement is not None
    rows, same = _rows(before, after, placement)
    moved = [row for row in rows if row.change == "moved"]
    old = carried(before, after.instance)
    verdict = None if old is None else check(after.instance, old)
    kind = after.instance.objective.value
    value = None if verdict is None else verdict.objectives.get(kind)
    gain = None if value is None or after.outcome.objective is None else (
        value - after.outcome.objective)  # fmt: skip
    seconds = _seconds(after, placement, moved)
    return DiffInfo(
        objective_kind=kind,
        time_unit=after.instance.time_unit,
        tables=rows,
        same=same,
        moved_tables=len(moved),
        moved_bytes=sum(row.bytes for row in moved),
        before=value,
        after=after.outcome.objective,
        before_fits=None if verdict is None else verdict.feasible,
        gain=gain,
        move_seconds=seconds,
        pays_after_steps=_pays(gain, seconds, after.instance.time_unit),
    )


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


def _rows(before: Plan, after: Plan, placement: Placement) -> tuple[tuple[MovedTable, ...], int]:
    old = {table.name: table for table in before.tables}
    rows, same = [], 0
    for index, now in enumerate(after.tables):
        was = old.pop(now.name, None)
        if was is None:
            rows.append(MovedTable(now.name, "new", None, now.option, (), now.ranks, 0))
        elif was.option == now.option and same_ranks(was.ranks, now.ranks):
            same += 1
        else:
            size = int(_received(after.instance, placement, index).sum())
            rows.append(
                MovedTable(now.name, "moved", was.option, now.option, was.ranks, now.ranks, size)
            )
    rows += [MovedTable(t.name, "gone", t.option, None, t.ranks, (), 0) for t in old.values()]
    return tuple(rows), same


def _received(instance: Instance, placement: Placement, table: int) -> np.ndarray:
    """Bytes each rank receives of one table, int64 array [ranks]."""
    found = np.zeros(instance.num_ranks, dtype=np.int64)
    blocks = instance.blocks_of(int(placement.options[table]))
    for index, ranks in zip(blocks, placement.ranks[table], strict=True):
        block = instance.block(index)
        if block.where != Where.CLUSTER:
            np.add.at(found, ranks, instance.shard_move[position_entries(instance, block, ranks)])
    return found


def _seconds(plan: Plan, placement: Placement, moved: list[MovedTable]) -> float | None:
    instance = plan.instance
    received = np.zeros(instance.num_ranks, dtype=np.int64)
    for row in moved:
        there = _received(instance, placement, instance.table_index(row.table))
        held = {rank for block in row.ranks_before for rank in block}
        there[[rank for rank in held if rank < len(there)]] = 0
        received += there
    links = plan.cluster.interconnect
    if not received.any():
        return 0.0
    return None if links is None else float(received.max()) / links.intra_machine


def _pays(gain: int | None, seconds: float | None, unit: str) -> int | None:
    if gain is None or gain <= 0 or seconds is None or unit != "ps":
        return None
    return math.ceil(seconds * _PS / gain)


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
    if info.way is None or not info.way.moves:
        return title
    told = fitting_grid(("moves", "tables", "bytes", info.objective_kind, "of the gain"),
                        moves_rows(info), {}, left=())  # fmt: skip
    shown = info.way.moves if everything else info.way.moves[:MOST]
    rows = [
        [str(number), ", ".join(move.tables), show_amount(move.bytes, info.time_unit),
         show_cost(move.objective, info.time_unit)]
        for number, move in enumerate(shown, start=1)
    ]  # fmt: skip
    grid = fitting_grid(("move", "tables", "bytes", "then"), rows, {"tables": 20}, left=("tables",))
    hidden = len(info.way.moves) - len(shown)
    more = [Text(f"… and {hidden} more (--all shows them)")] if hidden else []
    stuck = [Text(stuck_text(info.way.stuck))] if info.way.stuck else []
    return Group(title, told, grid, *more, *stuck)


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
