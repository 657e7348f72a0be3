"""Lift tables from their places, and put them back as they were."""

from __future__ import annotations

from formulations.search.anneal_data import (
    CLUSTER_LOAD,
    GROUP_LEVEL,
    GROUP_TABLES,
    HOME,
    MOVE_BYTES,
    MOVED,
    MOVES,
    OLD_OPTION,
    OLD_PLACE,
    OPTION,
    PLACE,
    STATE_START,
)
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.loads import add, on_assignment, on_fixed
from formulations.search.kernels.views import (
    block_of,
    first_assignment,
    group_of,
    home_of,
    level_of,
    old_option_of,
    option_of,
)


@kernel
def assignments_of(a, table):
    """First and end of a table's assignments, and the offset from an assignment to the index of its
    place."""
    option = option_of(a, table)
    first = first_assignment(a, option)
    return first, first_assignment(a, option + 1), a[PLACE] + a[a[STATE_START] + table] - first


@kernel
def recount(a, w, table, moved):
    """Count a table as moved or not; returns the change of the penalty."""
    if a[MOVES] < 0 or a[a[MOVED] + table] == moved:
        return 0.0
    a[a[MOVED] + table] = moved
    values = a[MOVE_BYTES] + 2 * option_of(a, table)
    return add(a, w, a[CLUSTER_LOAD] + a[MOVES], values, 2, 1 if moved else -1)


@kernel
def is_away(a, table):
    """1 if a table is not as in production, comparing the places of each block as a multiset."""
    now = home_of(a, table)
    if now == -2:
        return 0
    if now != option_of(a, table):
        return 1
    first, end, at = assignments_of(a, table)
    home = a[HOME] + a[a[STATE_START] + table] - first
    for i in range(first, end):
        here = there = 0
        for j in range(first, end):
            if block_of(a, j) == block_of(a, i):
                here += a[at + j] == a[at + i]
                there += a[home + j] == a[at + i]
        if here != there:
            return 1
    return 0


@kernel
def has_moved(a, table):
    """1 if a table counts as moved: moves are limited, and it is not as in production."""
    return 0 if a[MOVES] < 0 else is_away(a, table)


@kernel
def lift(a, w, table):
    """Lift a table from its places; returns the change of the penalty."""
    change, option = recount(a, w, table, 0), option_of(a, table)
    change += on_fixed(a, w, option, -1)
    first, end, at = assignments_of(a, table)
    for assignment in range(first, end):
        change += on_assignment(a, w, assignment, a[at + assignment], -1)
    if group_of(a, option) >= 0:
        a[a[GROUP_TABLES] + group_of(a, option)] -= 1
    return change


@kernel
def keep_and_lift(a, w, table):
    """Lift a table, and remember its option and places so that :func:`undo` can restore them."""
    a[a[OLD_OPTION] + table] = option_of(a, table)
    for i in range(a[a[STATE_START] + table], a[a[STATE_START] + table + 1]):
        a[a[OLD_PLACE] + i] = a[a[PLACE] + i]
    return lift(a, w, table)


@kernel
def settle(a, w, table):
    """Count a table that has been placed in its group, and as moved or not."""
    option = option_of(a, table)
    group = group_of(a, option)
    if group >= 0:
        a[a[GROUP_TABLES] + group] += 1
        a[a[GROUP_LEVEL] + group] = level_of(a, option)
    return recount(a, w, table, has_moved(a, table))


@kernel
def put_table(a, w, table, option, places):
    """Give a lifted table an option, at the places stored in the section at ``places``."""
    a[a[OPTION] + table] = option
    change = on_fixed(a, w, option, 1)
    first, end, at = assignments_of(a, table)
    for assignment in range(first, end):
        place = a[places + at - a[PLACE] + assignment]
        a[at + assignment] = place
        change += on_assignment(a, w, assignment, place, 1)
    return change + settle(a, w, table)


@kernel
def undo(a, w, table):
    lift(a, w, table)
    put_table(a, w, table, old_option_of(a, table), a[OLD_PLACE])
