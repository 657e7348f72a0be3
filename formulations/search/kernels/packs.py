"""Moves of several tables: ruin and put back, or repack some ranks."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    ENTRY_RANK,
    LIMIT,
    LOAD,
    OLD_PLACE,
    RANKS,
    REPACKED,
    RUINED,
    TABLES,
    WIDE,
)
from formulations.search.kernels.chance import accepted, draw
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.fusion import conflicts
from formulations.search.kernels.loads import on_assignment, would_add
from formulations.search.kernels.places import is_admitted, is_taken, place_table
from formulations.search.kernels.tables import (
    assignments_of,
    has_moved,
    keep_and_lift,
    lift,
    put_table,
    recount,
    undo,
)
from formulations.search.kernels.views import (
    block_of,
    entry_of,
    is_pinned,
    kind_of,
    machine_of,
    old_option_of,
    option_of,
    stays_together,
)
from formulations.search.numbers import (
    BUSY_OF,
    NOISE_BITS,
    NOISE_WAYS,
    REINSERTED,
    REPACKED_RANKS,
    REPACKED_SHARDS,
    RUINED_DRAWN,
    RUINED_ELSEWHERE,
    RUINED_LEAST,
    RUINED_WAYS,
)


@kernel
def _busy_rank(a, w):
    """The most penalised of a few ranks, drawn at random."""
    found, least = 0, -1.0
    for _ in range(BUSY_OF):
        rank, over = draw(a, a[RANKS]), 0.0
        for i in range(rank * a[WIDE], (rank + 1) * a[WIDE]):
            over += max(0, a[a[LOAD] + i] - a[a[LIMIT] + i]) * w[i]
        if over > least:
            found, least = rank, over
    return found


@kernel
def _on(a, table, rank):
    """Whether a shard of a table that chose its place is on a rank (or on its machine)."""
    first, end, at = assignments_of(a, table)
    for assignment in range(first, end):
        place = a[at + assignment]
        if place == (rank if kind_of(a, assignment) == 0 else machine_of(a, rank)):
            return True
    return False


@kernel
def _reinsert(a, w, table, choice_start, choice, most):
    """Put a lifted table back at the better of its own option and two others."""
    own, low = old_option_of(a, table), choice_start[table]
    best, least = -1, np.inf
    for k in range(REINSERTED):
        option = own if k == 0 else choice[low + draw(a, choice_start[table + 1] - low)]
        if conflicts(a, option, -1):
            continue
        change = place_table(a, w, table, option, most)
        if change < least:
            best, least = option, change
        lift(a, w, table)
    if best < 0:
        return place_table(a, w, table, own, most) + np.inf
    return place_table(a, w, table, best, most)


@kernel
def ruin(a, w, choice_start, choice, heat, most):
    """Lift some tables, most of them from a busy rank, and put them back one after another."""
    rank, wanted, found, change = _busy_rank(a, w), RUINED_LEAST + draw(a, RUINED_WAYS), 0, 0.0
    taken = a[RUINED]
    for _ in range(RUINED_DRAWN * wanted):
        table = draw(a, a[TABLES])
        again = False
        for i in range(found):
            again = again or a[taken + i] == table
        if not again and (_on(a, table, rank) or draw(a, RUINED_ELSEWHERE) == 0):
            a[taken + found] = table
            found += 1
            change += keep_and_lift(a, w, table)
            if found == wanted:
                break
    for i in range(found):
        change += _reinsert(a, w, a[taken + i], choice_start, choice, most)
    if accepted(a, change, heat):
        return change
    for i in range(found):
        lift(a, w, a[taken + i])
    for i in range(found):
        table = a[taken + i]
        put_table(a, w, table, old_option_of(a, table), a[OLD_PLACE])
    return 0.0


@kernel
def _size(a, w, entry):
    """The size of a shard: the sum of its shares of a rank's capacities."""
    total = 0.0
    for f in range(a[WIDE]):
        total += a[a[ENTRY_RANK] + entry * a[WIDE] + f] * w[f]
    return total


@kernel
def _gather(a, w, ranks, noise):
    """List the shards on some ranks (a[ranks - 1] of them, from a[ranks] on), the largest first, as
    table, assignment, place and size; returns the number of shards."""
    found, at = 0, a[REPACKED]
    for table in range(a[TABLES]):
        first, end, places = assignments_of(a, table)
        for assignment in range(first, end):
            if kind_of(a, assignment) or is_pinned(a, block_of(a, assignment)):
                continue
            place, here = a[places + assignment], False
            for k in range(a[ranks - 1]):
                here = here or a[ranks + k] == place
            if not here or found >= REPACKED_SHARDS:
                continue
            size = np.int64(_size(a, w, entry_of(a, assignment)) * 1e9)
            size = size * (noise + draw(a, 1024)) // (noise + 512)
            i = found
            while i > 0 and a[at + 4 * i - 1] < size:
                for k in range(4):
                    a[at + 4 * i + k] = a[at + 4 * i - 4 + k]
                i -= 1
            a[at + 4 * i] = table
            a[at + 4 * i + 1] = assignment
            a[at + 4 * i + 2] = place
            a[at + 4 * i + 3] = size
            found += 1
    return found


@kernel
def _some_ranks(a, rank):
    """List a rank and up to three others, drawn at random; returns where the list begins, with
    its length just before."""
    ranks = a[REPACKED] + 4 * REPACKED_SHARDS + 1
    a[ranks], many = rank, 1
    for _ in range(1 + draw(a, REPACKED_RANKS)):
        other, again = draw(a, a[RANKS]), False
        for k in range(many):
            again = again or a[ranks + k] == other
        if not again:
            a[ranks + many] = other
            many += 1
    a[ranks - 1] = many
    return ranks


@kernel
def _best_of(a, w, table, assignment, place, ranks):
    """The least penalised of the listed ranks that may take a lifted assignment; −1: none may."""
    _, end, _ = assignments_of(a, table)
    block, best, least = block_of(a, assignment), -1, np.inf
    for k in range(a[ranks - 1]):
        to = a[ranks + k]
        if stays_together(a, block):
            fits = machine_of(a, to) == machine_of(a, place)
        else:
            fits = is_admitted(a, assignment, to)
        if not fits or is_taken(a, table, end, assignment, to):
            continue
        penalty = would_add(a, w, to, entry_of(a, assignment))
        if penalty < least:
            best, least = to, penalty
    return best


@kernel
def _repack(a, w, rank):
    """Lift all shards from a rank and a few others and pack them again, the largest first; returns
    the change of the penalty and the number of shards."""
    ranks, noise = _some_ranks(a, rank), 1 << (NOISE_BITS + draw(a, NOISE_WAYS))
    count, change, at = _gather(a, w, ranks, noise), 0.0, a[REPACKED]
    for i in range(count):
        table, assignment, place = a[at + 4 * i], a[at + 4 * i + 1], a[at + 4 * i + 2]
        change += on_assignment(a, w, assignment, place, -1)
        a[assignments_of(a, table)[2] + assignment] = -1
    for i in range(count):
        table, assignment, place = a[at + 4 * i], a[at + 4 * i + 1], a[at + 4 * i + 2]
        places, best = assignments_of(a, table)[2], _best_of(a, w, table, assignment, place, ranks)
        if best < 0:
            best, change = place, np.inf
        a[places + assignment] = best
        change += on_assignment(a, w, assignment, best, 1)
    for i in range(count):
        table = a[at + 4 * i]
        change += recount(a, w, table, has_moved(a, table))
    return change, count


@kernel
def _unpack(a, w, count):
    """Put shards back where they were before :func:`_repack`."""
    at = a[REPACKED]
    for i in range(count):
        table, assignment, place = a[at + 4 * i], a[at + 4 * i + 1], a[at + 4 * i + 2]
        places = assignments_of(a, table)[2]
        on_assignment(a, w, assignment, a[places + assignment], -1)
        on_assignment(a, w, assignment, place, 1)
        a[places + assignment] = place
    for i in range(count):
        table = a[at + 4 * i]
        recount(a, w, table, has_moved(a, table))


@kernel
def repack_move(a, w, heat):
    """Repack a busy rank and some others."""
    change, count = _repack(a, w, _busy_rank(a, w))
    if accepted(a, change, heat):
        return change
    _unpack(a, w, count)
    return 0.0


@kernel
def option_and_repack(a, w, table, choice_start, choice, heat, most):
    """Give a table another option, then repack the rank that it overloads most and some others."""
    low = choice_start[table]
    option = choice[low + draw(a, choice_start[table + 1] - low)]
    if conflicts(a, option, option_of(a, table)):
        return 0.0
    change = keep_and_lift(a, w, table)
    change += place_table(a, w, table, option, most)
    if change == np.inf:
        undo(a, w, table)
        return 0.0
    worst, least = -1, -1.0
    first, end, at = assignments_of(a, table)
    for assignment in range(first, end):
        if kind_of(a, assignment) == 0:
            rank, over = a[at + assignment], 0.0
            for i in range(rank * a[WIDE], (rank + 1) * a[WIDE]):
                over += max(0, a[a[LOAD] + i] - a[a[LIMIT] + i]) * w[i]
            if over > least:
                worst, least = rank, over
    if worst < 0 or least <= 0.0:
        worst = _busy_rank(a, w)
    more, count = _repack(a, w, worst)
    if accepted(a, change + more, heat):
        return change + more
    _unpack(a, w, count)
    undo(a, w, table)
    return 0.0
