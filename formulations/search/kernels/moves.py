"""Moves of one table or two: another option, another place for a shard, a swap."""

from __future__ import annotations

from formulations.search.anneal_data import (
    HOME,
    MOVES,
)
from formulations.search.kernels.chance import accepted, draw
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.fusion import change_level, conflicts
from formulations.search.kernels.loads import on_assignment
from formulations.search.kernels.places import (
    choose_place,
    domain_of,
    is_admitted,
    is_taken,
    place_table,
    ranks_of,
)
from formulations.search.kernels.tables import (
    assignments_of,
    has_moved,
    keep_and_lift,
    put_table,
    recount,
    undo,
)
from formulations.search.kernels.views import (
    block_of,
    first_assignment,
    group_of,
    home_of,
    is_pinned,
    kind_of,
    machine_of,
    option_of,
    stays_together,
)
from formulations.search.numbers import HOMING


@kernel
def _change_option(a, w, table, option, home, heat, most):
    """Give a table an option, with its shards where they are least penalised (or as in
    production)."""
    change = keep_and_lift(a, w, table)
    if home:
        change += put_table(a, w, table, option, a[HOME])
    else:
        change += place_table(a, w, table, option, most)
    if accepted(a, change, heat):
        return change
    undo(a, w, table)
    return 0.0


@kernel
def move_shard(a, w, table, assignment, heat, most):
    """Move one shard (or machine) to where it is least penalised."""
    _, end, at = assignments_of(a, table)
    block, here = block_of(a, assignment), a[at + assignment]
    if is_pinned(a, block):
        return 0.0
    low, high = domain_of(a, assignment)
    if stays_together(a, block):
        low, high = ranks_of(a, machine_of(a, here))
    change = on_assignment(a, w, assignment, here, -1)
    place = choose_place(a, w, table, end, assignment, low, high, most)
    if place < 0 or place == here:
        on_assignment(a, w, assignment, here, 1)
        return 0.0
    change += on_assignment(a, w, assignment, place, 1)
    a[at + assignment] = place
    change += recount(a, w, table, has_moved(a, table))
    if accepted(a, change, heat):
        return change
    on_assignment(a, w, assignment, place, -1)
    on_assignment(a, w, assignment, here, 1)
    a[at + assignment] = here
    recount(a, w, table, has_moved(a, table))
    return 0.0


@kernel
def _admits(a, table, assignment, here, place):
    """Whether an assignment may move to a place that another assignment leaves."""
    block = block_of(a, assignment)
    if is_pinned(a, block):
        return False
    if stays_together(a, block):
        if machine_of(a, here) != machine_of(a, place):
            return False
    elif not is_admitted(a, assignment, place):
        return False
    _, end, _ = assignments_of(a, table)
    return not is_taken(a, table, end, assignment, place)


@kernel
def _exchange(a, w, one, i, other, j):
    """Swap the places of assignments i and j of two tables; returns the change of the penalty."""
    at, to = assignments_of(a, one)[2] + i, assignments_of(a, other)[2] + j
    p, q = a[at], a[to]
    change = on_assignment(a, w, i, p, -1) + on_assignment(a, w, j, q, -1)
    change += on_assignment(a, w, i, q, 1) + on_assignment(a, w, j, p, 1)
    a[at], a[to] = q, p
    change += recount(a, w, one, has_moved(a, one))
    return change + recount(a, w, other, has_moved(a, other))


@kernel
def swap(a, w, one, i, other, j, heat):
    """Swap the places of two shards (or machines)."""
    p, q = a[assignments_of(a, one)[2] + i], a[assignments_of(a, other)[2] + j]
    if p == q or (kind_of(a, i) == 0) != (kind_of(a, j) == 0):
        return 0.0
    if block_of(a, i) != block_of(a, j) and not (
        _admits(a, one, i, p, q) and _admits(a, other, j, q, p)
    ):
        return 0.0
    change = _exchange(a, w, one, i, other, j)
    if accepted(a, change, heat):
        return change
    _exchange(a, w, one, i, other, j)
    return 0.0


@kernel
def move_table(a, w, table, choice_start, choice, heat, most):
    """Give a table a random option, or return it to its place in production."""
    low = choice_start[table]
    count = choice_start[table + 1] - low
    option = choice[low + draw(a, count)]
    home = a[MOVES] >= 0 and home_of(a, table) >= 0 and draw(a, HOMING) == 0
    if home:
        option = home_of(a, table)
    elif count == 1 and first_assignment(a, option) == first_assignment(a, option + 1):
        return 0.0
    if not conflicts(a, option, option_of(a, table)):
        return _change_option(a, w, table, option, home, heat, most)
    if home or group_of(a, option_of(a, table)) != group_of(a, option):
        return 0.0
    return change_level(a, w, choice_start, choice, option, heat, most)
