"""Two plans side by side: what moves, what that costs once, what it gains every step."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from formulations import Instance, Placement, Where
from formulations.result.check import check, position_entries
from formulations.result.placement import same_ranks
from milp_planner.errors import BadInput
from milp_planner.plans.compile import regrouped
from milp_planner.plans.placement import Plan

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
class DiffInfo:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


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
