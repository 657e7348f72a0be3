"""Fused tables have one level, which they change together."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    GROUP,
    GROUP_LEVEL,
    GROUP_TABLES,
    LEVEL,
    OLD_PLACE,
    TABLES,
)
from formulations.search.kernels.chance import accepted, draw
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.places import place_table
from formulations.search.kernels.tables import keep_and_lift, put_table, undo
from formulations.search.kernels.views import (
    block_of,
    domain_number,
    first_assignment,
    group_of,
    kind_of,
    level_of,
    must_part,
    option_of,
    stays_together,
)


@kernel
def conflicts(a, option, old):
    """Whether other tables hold the option's fusion group at another level; ``old`` is the table's
    present option (-1: the table is lifted)."""
    group = group_of(a, option)
    if group < 0 or a[a[GROUP_LEVEL] + group] == level_of(a, option):
        return False
    mine = 1 if old >= 0 and group_of(a, old) == group else 0
    return a[a[GROUP_TABLES] + group] > mine


@kernel
def _alike(a, option, other):
    """Whether one option can take over the places of the other."""
    first, second = first_assignment(a, option), first_assignment(a, other)
    count = first_assignment(a, option + 1) - first
    if first_assignment(a, other + 1) - second != count:
        return False
    for i in range(count):
        block, there = block_of(a, first + i), block_of(a, second + i)
        if (
            domain_number(a, first + i) != domain_number(a, second + i)
            or stays_together(a, block) != stays_together(a, there)
            or must_part(a, block) != must_part(a, there)
            or (kind_of(a, first + i) == 0) != (kind_of(a, second + i) == 0)
        ):
            return False
    return True


@kernel
def option_count(a):
    """Number of options, which is the length of each section by option."""
    return a[LEVEL] - a[GROUP]


@kernel
def at_level(a, table, choice_start, choice, like):
    """The table's option at the group and level of ``like`` (-1: none), if possible one that can
    take over its places."""
    found = -1
    for i in range(choice_start[table], choice_start[table + 1]):
        option = choice[i]
        if (
            option < option_count(a)  # higher numbers stand for homes
            and group_of(a, option) == group_of(a, like)
            and level_of(a, option) == level_of(a, like)
        ):
            if _alike(a, option_of(a, table), option):
                return option
            if found < 0 or draw(a, 2) == 0:
                found = option
    return found


@kernel
def change_level(a, w, choice_start, choice, like, heat, most):
    """Move all tables of a fusion group to the level of an option together."""
    group, level, change, end = group_of(a, like), level_of(a, like), 0.0, a[TABLES]
    for t in range(a[TABLES]):
        old = option_of(a, t)
        if group_of(a, old) != group:
            continue
        option = at_level(a, t, choice_start, choice, like)
        if option < 0:
            change, end = np.inf, t
            break
        change += keep_and_lift(a, w, t)
        if _alike(a, old, option):
            change += put_table(a, w, t, option, a[OLD_PLACE])
        else:
            change += place_table(a, w, t, option, most)
    if change < np.inf and accepted(a, change, heat):
        return change
    for t in range(end):
        option = option_of(a, t)
        if group_of(a, option) == group and level_of(a, option) == level:
            undo(a, w, t)
    return 0.0
