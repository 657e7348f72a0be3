"""The four greedy algorithms that NeuroShard compares with, replayed.

Tables are taken by falling measure, then falling bytes; each goes to the device with the least
measure (then the fewest bytes) of those that still have room. So the two algorithms whose plans the
authors' logs record (dim and lookup, 100 tasks on 4 × 8 GiB) come out shard by shard.
"""

from collections.abc import Callable
from math import log10

from milp_planner.inputs import Model
from milp_planner.inputs.table import Table

MEASURES: dict[str, Callable[[Table], float]] = {
    "size": lambda t: t.rows * t.dim,
    "dim": lambda t: t.dim,
    "lookup": lambda t: t.dim * t.lookups_per_sample,
    "size × lookup": lambda t: t.dim * t.lookups_per_sample * log10(t.rows),
}


def place(model: Model, measure: str, devices: int, room: int) -> list[int] | None:
    """The device of every table, in the model's order; None where one has no room."""
    tables = model.tables
    size = [t.rows * t.dim * t.element_bytes for t in tables]
    values = [MEASURES[measure](t) for t in tables]
    loads, held, found = [0.0] * devices, [0] * devices, [0] * len(tables)
    for table in sorted(range(len(tables)), key=lambda i: (values[i], size[i]))[::-1]:
        free = [d for d in range(devices) if held[d] + size[table] <= room]
        if not free:
            return None
        device = min(free, key=lambda d: (loads[d], held[d]))
        found[table] = device
        loads[device] += values[table]
        held[device] += size[table]
    return found
