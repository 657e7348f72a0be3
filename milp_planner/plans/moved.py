"""The moves to a plan from the one in production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulations.instance.facts import bytes_to_move
from formulations.result.check import moved_bytes, moved_tables
from milp_planner.drawing.units import listed, show_bytes, show_share
from milp_planner.files import Facts
from milp_planner.plans.display import NAMED

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan


@dataclass(frozen=True)
class MovedInfo(Facts):
    """Tables and bytes that move between two plans."""

    tables: tuple[str, ...]
    """Names of the tables that move."""
    bytes: int
    """Bytes of all their shards in this plan."""
    held: int
    """Bytes, in this plan, of all tables that were there before."""
    new: tuple[str, ...]
    """Tables that were not there before; placing them moves nothing."""
    displaced: tuple[str, ...]
    """Tables that must move because their option or their ranks no longer exist."""


def moved_of(plan: Plan) -> MovedInfo | None:
    """The moves to a plan; None without a placement or an earlier plan."""
    instance, placement = plan.instance, plan.outcome.placement
    if placement is None or not instance.current:
        return None
    names, moved = instance.table_names, moved_tables(instance, placement)
    size = bytes_to_move(instance)
    before = {now.table for now in instance.current}
    return MovedInfo(
        tuple(names[table] for table in moved),
        moved_bytes(instance, placement, moved),
        int(size[placement.options[sorted(before)]].sum()),
        tuple(name for table, name in enumerate(names) if table not in before),
        tuple(names[now.table] for now in instance.current if now.option < 0),
    )


def moved_told(info: MovedInfo) -> list[str]:
    """The moves in sentences."""
    share = show_share(info.bytes, info.held) if info.held else "0%"
    sentences = [
        f"moves: {len(info.tables):,} tables, {show_bytes(info.bytes)} of "
        f"{show_bytes(info.held)} ({share})"
        + (f": {listed(info.tables, NAMED)}" if info.tables else "")
    ]
    for what, tables in (("new", info.new), ("option or ranks no longer exist", info.displaced)):
        if tables:
            sentences.append(f"{what}: {listed(tables, NAMED)}")
    return sentences
