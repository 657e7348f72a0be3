"""Places for shards: which are allowed, and which is penalised least."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    ADMITTED,
    ADMITTED_WIDE,
    DOMAIN_START,
    DOMAINS,
    MACHINE_RANKS,
    MACHINE_START,
    OPTION,
    PREFERRED,
)
from formulations.search.kernels.chance import draw
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.loads import on_assignment, on_fixed, would_add
from formulations.search.kernels.tables import assignments_of, settle
from formulations.search.kernels.views import (
    block_of,
    domain_number,
    entry_of,
    is_pinned,
    kind_of,
    must_part,
    stays_together,
)


@kernel
def is_taken(a, table, end, assignment, place):
    """Whether another assignment of the same block, before ``end``, is already there."""
    block = block_of(a, assignment)
    if not must_part(a, block):
        return False
    first, _, at = assignments_of(a, table)
    for j in range(first, end):
        if j != assignment and block_of(a, j) == block and a[at + j] == place:
            return True
    return False


@kernel
def choose_place(a, w, table, end, assignment, low, high, most):
    """The least penalised of ``most`` places drawn from ``a[low:high]``; -1: none is free."""
    size = high - low
    begin, found, least = draw(a, size), -1, np.inf
    for k in range(size):
        if k >= most and found >= 0:
            break
        if size <= most or k >= most:
            place = a[low + (begin + k) % size]
        else:
            place = a[low + draw(a, size)]
        if is_taken(a, table, end, assignment, place):
            continue
        if kind_of(a, assignment) == 0:
            penalty = would_add(a, w, place, entry_of(a, assignment))
        else:
            penalty = on_assignment(a, w, assignment, place, 1)
            on_assignment(a, w, assignment, place, -1)
        if penalty < least:
            found, least = place, penalty
    return found


@kernel
def domain_of(a, assignment):
    """Begin and end of an assignment's domain in ``a``."""
    at = a[DOMAIN_START] + domain_number(a, assignment)
    return a[DOMAINS] + a[at], a[DOMAINS] + a[at + 1]


@kernel
def ranks_of(a, machine):
    """Begin and end of a machine's ranks in ``a``."""
    at = a[MACHINE_START] + machine
    return a[MACHINE_RANKS] + a[at], a[MACHINE_RANKS] + a[at + 1]


@kernel
def is_admitted(a, assignment, place):
    """Whether a place is in the domain of an assignment."""
    return a[a[ADMITTED] + domain_number(a, assignment) * a[ADMITTED_WIDE] + place] > 0


@kernel
def _admits_all(a, assignment, machine):
    """Whether all ranks of a machine are in the domain of an assignment that is not pinned."""
    if is_pinned(a, block_of(a, assignment)):
        return False
    low, high = ranks_of(a, machine)
    for i in range(low, high):
        if not is_admitted(a, assignment, a[i]):
            return False
    return True


@kernel
def place_table(a, w, table, option, most):
    """Give a lifted table an option, and place every assignment where it is least penalised.

    Returns the change of the penalty, infinite where there are too few places for shards that must
    lie apart.
    """
    a[a[OPTION] + table] = option
    change, block, position = on_fixed(a, w, option, 1), -1, 0
    first, end, at = assignments_of(a, table)
    low = high = 0
    for assignment in range(first, end):
        position += 1
        if block_of(a, assignment) != block:
            block, position = block_of(a, assignment), 0
            low, high = domain_of(a, assignment)
            machine = a[a[PREFERRED] + table]
            if stays_together(a, block):
                if machine < 0 or not is_admitted(a, assignment, machine):
                    machine = a[low + draw(a, high - low)]
                low, high = ranks_of(a, machine)
            elif (
                machine >= 0 and kind_of(a, assignment) == 0 and _admits_all(a, assignment, machine)
            ):
                low, high = ranks_of(a, machine)
        if is_pinned(a, block):
            place = a[low + position]
        else:
            place = choose_place(a, w, table, assignment, assignment, low, high, most)
        if place < 0:
            place, change = a[low], np.inf
        a[at + assignment] = place
        change += on_assignment(a, w, assignment, place, 1)
    return change + settle(a, w, table)
