"""Even out the use of memory, within an objective."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    LIMIT,
    LOAD,
    MACHINE_LOAD,
    RANKS,
)
from formulations.search.kernels.compiled import entry, kernel
from formulations.search.kernels.loads import on_assignment, value_of
from formulations.search.kernels.places import choose_place, domain_of, ranks_of
from formulations.search.kernels.tables import assignments_of, has_moved, recount
from formulations.search.kernels.targets import aim_here
from formulations.search.kernels.views import (
    block_of,
    is_pinned,
    kind_of,
    machine_of,
    stays_together,
)
from formulations.search.numbers import BROKEN


@kernel
def _at(a, assignment, place, load, wide):
    """Whether an assignment lies, at least in part, on the rank or machine of a load."""
    machine = place if kind_of(a, assignment) else machine_of(a, place)
    if load >= a[MACHINE_LOAD]:
        return machine == (load - a[MACHINE_LOAD]) // wide
    if kind_of(a, assignment):
        return machine == machine_of(a, load // wide)
    return place == load // wide


@kernel
def _relieves(a, w, table, load, wide, most):
    """Move one shard of a table away from the rank or machine of a load, to a place that is less
    full even with that shard; returns whether a shard was moved."""
    first, end, at = assignments_of(a, table)
    for assignment in range(first, end):
        here, block = a[at + assignment], block_of(a, assignment)
        if is_pinned(a, block) or not _at(a, assignment, here, load, wide):
            continue
        begin, stop = domain_of(a, assignment)
        if stays_together(a, block):
            begin, stop = ranks_of(a, machine_of(a, here))
        change = on_assignment(a, w, assignment, here, -1)
        place = (
            choose_place(a, w, table, end, assignment, begin, stop, a[RANKS])
            if change < 0
            else here
        )
        if place < 0:
            place = here
        change += on_assignment(a, w, assignment, place, 1)
        a[at + assignment] = place
        change += recount(a, w, table, has_moved(a, table))
        if place != here and change < -BROKEN and value_of(a) <= most:
            return True
        on_assignment(a, w, assignment, place, -1)
        on_assignment(a, w, assignment, here, 1)
        a[at + assignment] = here
        recount(a, w, table, has_moved(a, table))
    return False


@kernel
def _fullest(a, room, low, high, wide):
    """The load with the largest share of its room (-1: none); sets every limit below that share."""
    full, top = -1, 0.0
    for i in range(low, high, wide):
        share = a[a[LOAD] + i] / max(1, room[i])
        if share > top:
            full, top = i, share
    for i in range(low, high, wide):
        a[a[LIMIT] + i] = min(room[i], np.int64(np.ceil(top * room[i])) - 1)
    if full >= 0:
        a[a[LIMIT] + full] = a[a[LOAD] + full] - 1
    return full


@kernel
def _relieved(a, w, order, count, full, wide, most):
    """Move a shard of any table away from the place of a load; returns whether it did."""
    for n in range(count):
        if _relieves(a, w, order[n], full, wide, most):
            return True
    return False


@kernel
def _even(a, w, room, order, count, low, high, wide, most, moves):
    made = 0
    while made < moves:
        full = _fullest(a, room, low, high, wide)
        aim_here(a)
        if full < 0 or not _relieved(a, w, order, count, full, wide, most):
            break
        made += 1
    for i in range(low, high, wide):
        a[a[LIMIT] + i] = room[i]
    return made


@entry
def even(a, w, room, order, low, high, wide, most, moves):
    """Move so many shards away from the place where a resource is fullest, as long as the largest
    fill falls; returns how many it did.

    Parameters
    ----------
    room : int64 array
        The limit of every load.
    order : int64 array
        Tables in the order in which to try them.
    low, high, wide : int
        Loads of the resource: every ``wide``-th from ``low`` to ``high``.
    most : int
        The highest objective allowed.
    """
    return _even(
        a.ctypes, w.ctypes, room.ctypes, order.ctypes, len(order), low, high, wide, most, moves
    )
