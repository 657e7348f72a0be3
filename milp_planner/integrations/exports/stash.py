"""Stashed tables and caches in TorchRec's format: their names, and what the trainer must call."""

from __future__ import annotations

from typing import Any

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.plans.placement import Plan


def stashed(plan: Plan, mode: str = "HBM_ONLY") -> list[str]:
    """Tables of a mode whose weights, or whose caches, leave HBM between forward and backward."""
    return [table.name for table in plan.tables if table.stash and table.mode == mode]


def names(document: dict[str, Any]) -> list[str] | None:
    """Names that a document lists as stashed; None if it has no such list."""
    lists = ("stash_weights", "stash_caches")
    found = [document.get(name) for name in lists]
    for name, listed_ in zip(lists, found, strict=True):
        if listed_ is not None and not (
            isinstance(listed_, list) and all(type(n) is str for n in listed_)
        ):
            raise BadInput(f"{name}: must be a list of names of tables")
    return None if found == [None, None] else [n for each in found for n in each or ()]


def notes(plan: Plan) -> list[str]:
    """Sentences about what runs a stash."""
    found = []
    if stashed(plan):
        found.append(
            f"stash_weights names {listed(stashed(plan), 3)}: give the names to TorchRec's "
            "MemoryStashingManager.set_stashed_tables before sharding, or set stash_weights in the "
            "tables' configs"
        )
    if caches := stashed(plan, "CACHING"):
        found.append(
            f"caches of {listed(caches, 3)} leave HBM in the dense part: have the trainer call "
            "MemoryStashingManager.stash_emo_cache after each lookup, which empties the caches of "
            "all cached tables of the lookup; TorchRec has it from 1.9.2 on"
        )
    return found
