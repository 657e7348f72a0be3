"""Annealing, and replica exchange."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    GROUP_LEVEL,
    GROUP_TABLES,
    LIMIT,
    LOAD,
    MOVED,
    OLD_PLACE,
    OPTION,
    PEAKS,
    PLACE,
    REPLICA,
    STATE,
    TABLES,
    TALLY,
)
from formulations.search.kernels.chance import draw
from formulations.search.kernels.compiled import entry, kernel
from formulations.search.kernels.loads import penalty_of
from formulations.search.kernels.moves import move_shard, move_table, swap
from formulations.search.kernels.packs import option_and_repack, repack_move, ruin
from formulations.search.kernels.places import place_table
from formulations.search.kernels.tables import assignments_of, put_table
from formulations.search.kernels.targets import aim, record, shift_target
from formulations.search.kernels.views import old_option_of
from formulations.search.numbers import NO_PENALTY, SHIFTS


@kernel
def _one_move(a, w, choice_start, choice, heat, mix):
    """Make one random move; returns the change of the penalty (0 if the move is undone)."""
    if a[PEAKS] > 1 and draw(a, 100) < SHIFTS:
        return shift_target(a, w, heat)
    table, kind = draw(a, a[TABLES]), draw(a, 100)
    if kind >= mix[4]:
        which = draw(a, 100)
        if which < mix[5]:
            return repack_move(a, w, heat)
        if which < mix[6]:
            return option_and_repack(a, w, table, choice_start, choice, heat, mix[2])
        return ruin(a, w, choice_start, choice, heat, mix[2])
    first, end, _ = assignments_of(a, table)
    if kind < mix[0] or first == end:
        return move_table(a, w, table, choice_start, choice, heat, mix[2])
    assignment = first + draw(a, end - first)
    if kind < mix[1]:
        return move_shard(a, w, table, assignment, heat, mix[3])
    other = draw(a, a[TABLES])
    first, end, _ = assignments_of(a, other)
    if first == end:
        return 0.0
    return swap(a, w, table, assignment, other, first + draw(a, end - first), heat)


@kernel
def _put(a, w, order, count, looks):
    for i in range(count):
        table = order[i]
        if looks:
            place_table(a, w, table, old_option_of(a, table), looks)
        else:
            put_table(a, w, table, old_option_of(a, table), a[OLD_PLACE])


@entry
def put(a, w, order, looks):
    """Place tables, with the options in ``OLD_OPTION``: at the places in ``OLD_PLACE`` or, if
    ``looks`` is positive, at the least penalised of that many places."""
    _put(a.ctypes, w.ctypes, order.ctypes, len(order), looks)


@kernel
def _anneal(a, w, choice_start, choice, span, heats, mix, limits):
    penalty, heat = penalty_of(a, w), heats[0]
    for n in range(span[0], span[1]):
        while penalty < NO_PENALTY:
            penalty = penalty_of(a, w)
            if penalty > 0.0:
                break
            record(a, w, limits[0])
            penalty = penalty_of(a, w)
            if a[TALLY + 1] <= limits[1]:
                return penalty
        if n % 256 == 0 or n == span[0]:
            heat = heats[0] * (heats[1] / heats[0]) ** (n / span[2])
        penalty += _one_move(a, w, choice_start, choice, heat, mix)
    return penalty_of(a, w)


@kernel
def _select(a, replica):
    """Make the names point to the sections of a replica."""
    shift = (replica - a[REPLICA]) * a[STATE]
    a[LOAD] += shift
    a[LIMIT] += shift
    a[OPTION] += shift
    a[PLACE] += shift
    a[GROUP_LEVEL] += shift
    a[GROUP_TABLES] += shift
    a[MOVED] += shift
    a[REPLICA] = replica


@entry
def select(a, replica):
    """Make the names point to the sections of a replica."""
    _select(a.ctypes, replica)


@kernel
def _sample(a, w, choice_start, choice, ladder, slot, left, count, rounds, span, mix, limits):
    for n in range(rounds):
        for i in range(count):
            _select(a, slot[i])
            if count > 1:
                aim(a)
            heats = (ladder[2 * i], ladder[2 * i + 1])
            left[i] = _anneal(a, w, choice_start, choice, span, heats, mix, limits)
            if a[TALLY] and a[TALLY + 1] <= limits[1]:
                return
        for i in range(n % 2, count - 1, 2):
            gain = (1 / ladder[2 * i + 3] - 1 / ladder[2 * i + 1]) * (left[i] - left[i + 1])
            if gain <= 0.0 or draw(a, 1 << 30) < np.exp(-gain) * (1 << 30):
                slot[i], slot[i + 1] = slot[i + 1], slot[i]
                left[i], left[i + 1] = left[i + 1], left[i]


@entry
def sample(a, w, choice_start, choice, ladder, slot, left, rounds, span, mix, limits):
    """Anneal replicas, each at its own temperature, and exchange neighbours' temperatures.

    Parameters
    ----------
    choice_start, choice : int64 arrays
        Options that moves choose from, by table.
    ladder : float64 array [2 × replicas]
        Temperatures at the first and at the last of all moves, between which a replica cools
        geometrically; the hottest replica first.
    slot : int64 array
        Replica at each temperature.
    left : float64 array
        Receives the penalty of the replica at each temperature.
    rounds : int
        Number of exchanges.
    span : three ints
        Every replica makes moves ``span[0]`` to ``span[1]`` of ``span[2]`` before each exchange.
    mix : seven ints
        Thresholds for two random numbers from 0 to 99. By the first, a move below mix[0] changes an
        option, below mix[1] moves a shard, below mix[4] swaps two shards. For the others the second
        decides: below mix[5] they repack some ranks, below mix[6] they change an option and then
        repack, and the rest ruin and put back. mix[2] is the number of places tried for each shard
        of an option, mix[3] for a single shard.
    limits : two floats
        After a plan without penalty, the target is set below its objective by the first as a share;
        an objective of at most the second ends the run.
    """
    _sample(
        a.ctypes, w.ctypes, choice_start.ctypes, choice.ctypes, ladder.ctypes, slot.ctypes,
        left.ctypes, len(slot), rounds, span, mix, limits,
    )  # fmt: skip
