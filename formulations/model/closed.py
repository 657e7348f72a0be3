"""What closed tables put where: the constants of a neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.instance import Instance, IntArray
from formulations.result.check import compute_loads, moved_bytes, moved_tables
from formulations.result.placement import Placement


@dataclass(frozen=True, eq=False)
class Rest:
    """Loads, levels and moves of the closed tables.

    Attributes
    ----------
    empty : bool
        Whether no table is closed.
    cost : int64 array [ranks, phases]
    off_cost : int64 array [phases]
    use : list [resources] of int64 array [places]
    levels : dict of fusion group to level
    moved, moved_bytes : int
    """

    empty: bool
    cost: IntArray
    off_cost: IntArray
    use: list[IntArray]
    levels: dict[int, int]
    moved: int = 0
    moved_bytes: int = 0


def nothing_closed(instance: Instance) -> Rest:
    """No closed table."""
    shape = (instance.num_ranks, len(instance.phases))
    use = [np.zeros(len(r.capacity), dtype=np.int64) for r in instance.resources]
    none = np.zeros(len(instance.phases), dtype=np.int64)
    return Rest(True, np.zeros(shape, dtype=np.int64), none, use, {})


def rest_of(instance: Instance, placement: Placement, opened: IntArray) -> Rest:
    """What all tables but the open ones put where."""
    closed = np.setdiff1d(np.arange(instance.num_tables), opened)
    loads = compute_loads(instance, placement, closed.tolist())
    options = placement.options[closed]
    options = options[instance.option_group[options] >= 0]
    levels = dict(
        zip(
            instance.option_group[options].tolist(),
            instance.option_level[options].tolist(),
            strict=True,
        )
    )
    moved = [t for t in moved_tables(instance, placement) if t in set(closed.tolist())]
    size = moved_bytes(instance, placement, moved)
    return Rest(False, loads.cost, loads.unplaced_cost, loads.use, levels, len(moved), size)
