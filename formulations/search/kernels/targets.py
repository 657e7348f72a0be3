"""The target of the objective, as a limit for every rank in every phase: the phase's part of the
target, and what is hidden there."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    ASSIGNMENTS,
    BEST_OPTION,
    BEST_PLACE,
    CLUSTER_LOAD,
    GOAL,
    LIMIT,
    LOAD,
    PEAKS,
    PLACE,
    RANKS,
    TABLES,
    TALLY,
    WIDE,
)
from formulations.search.kernels.chance import accepted, draw
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.loads import hidden_in, top_load, value_of
from formulations.search.kernels.views import option_of


@kernel
def shift_target(a, w, heat):
    """Shift part of a phase's target to another phase: its slack, or a random part."""
    p = draw(a, a[PEAKS])
    q = (p + 1 + draw(a, a[PEAKS] - 1)) % a[PEAKS]
    target, more = a[a[LIMIT] + p], a[a[LIMIT] + q]
    own = target - hidden_in(a, p)
    part = own - top_load(a, p)
    if part <= 0 or draw(a, 2):
        part = own >> (2 + draw(a, 10))
    if part <= 0 or part >= own:
        return 0.0
    change = 0.0
    for rank in range(a[RANKS]):
        at = rank * a[WIDE]
        load, other = a[a[LOAD] + at + p], a[a[LOAD] + at + q]
        change += (max(load, target - part) - max(load, target) + part) * w[at + p]
        change += (max(other, more + part) - max(other, more) - part) * w[at + q]
    if not accepted(a, change, heat):
        return 0.0
    for rank in range(a[RANKS]):
        a[a[LIMIT] + rank * a[WIDE] + p] = target - part
        a[a[LIMIT] + rank * a[WIDE] + q] = more + part
    return change


@kernel
def record(a, w, share):
    """Record the present state as a plan if it is the best, and set the target below its cost."""
    value = value_of(a)
    a[GOAL] = value - max(1, np.int64(abs(value) * share))
    if a[PEAKS] == 0:
        a[a[LIMIT] + a[CLUSTER_LOAD]] = a[GOAL]
    left = value - a[GOAL]
    for p in range(a[PEAKS]):
        top, part = top_load(a, p), left
        if p < a[PEAKS] - 1:
            part = min(left, np.int64(np.ceil(top / max(1, value) * (value - a[GOAL]))))
        left -= part
        for rank in range(a[RANKS]):
            a[a[LIMIT] + rank * a[WIDE] + p] = top - part + hidden_in(a, p)
    if a[TALLY] == 0 or value < a[TALLY + 1]:
        a[TALLY + 1] = value
        for t in range(a[TABLES]):
            a[a[BEST_OPTION] + t] = option_of(a, t)
        for i in range(a[ASSIGNMENTS]):
            a[a[BEST_PLACE] + i] = a[a[PLACE] + i]
    a[TALLY] += 1


@kernel
def aim(a):
    """Set this replica's target to the common one, divided between phases as before."""
    if a[PEAKS] == 0:
        a[a[LIMIT] + a[CLUSTER_LOAD]] = a[GOAL]
    total = 0
    for p in range(a[PEAKS]):
        total += max(0, a[a[LIMIT] + p] - hidden_in(a, p))
    for p in range(a[PEAKS]):
        target = a[GOAL]
        if a[PEAKS] > 1:
            own = max(0, a[a[LIMIT] + p] - hidden_in(a, p))
            share = own / total if total else 1 / a[PEAKS]
            target = np.int64(share * a[GOAL])
        for rank in range(a[RANKS]):
            a[a[LIMIT] + rank * a[WIDE] + p] = target + hidden_in(a, p)


@kernel
def aim_here(a):
    """Set the target of every phase to its present peak, so that exceeding it is penalised."""
    if a[PEAKS] == 0:
        a[a[LIMIT] + a[CLUSTER_LOAD]] = a[a[LOAD] + a[CLUSTER_LOAD]]
    for p in range(a[PEAKS]):
        top = top_load(a, p)
        for rank in range(a[RANKS]):
            a[a[LIMIT] + rank * a[WIDE] + p] = top + hidden_in(a, p)
