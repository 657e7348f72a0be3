# ruff: noqa: I001, PLR0913 - compiled loops take plain numbers; one import a line fills pages
# mypy: disable-error-code="no-untyped-def"
"""The compiled loops of annealing: loads in place, moves tried and taken back.

``a`` holds everything in one int64 array (:mod:`formulations.search.anneal_data`: ``a[NAME]`` is
a number, or where a section begins), ``w`` what a unit of excess weighs at every place: with few
arguments, calls stay cheap and compiling stays short. Every function releases the GIL.

Penalty: Σ over ranks and phases of max(0, cost − T_p)/T + c·Σ over places of
max(0, use/capacity − 1), c the capacity weight. T is the sum of T_p, and moves shift it between
the phases (one, but under ``step_time``). Sums are kept in integers; only the penalty is a float.

All loops stand in this file: Numba's cache of a file does not see that what it calls in another
has changed.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from formulations.search.anneal_data import (
    ASSIGNMENTS, ASSIGNMENT_BLOCK, ASSIGNMENT_DOMAIN, ASSIGNMENT_ENTRY, ASSIGNMENT_KIND,
    ASSIGNMENT_START, ASSIGNMENT_UNEVEN,
    ADMITTED, ADMITTED_WIDE, BEST_OPTION, BEST_PLACE, CLUSTER, CLUSTER_LOAD, CLUSTER_WIDE,
    DISTINCT, DOMAINS, DOMAIN_START, ENTRY_CLUSTER, ENTRY_MACHINE, ENTRY_RANK, EVERYWHERE,
    EVERY_MACHINE, EVERY_RANK, FIXED_ENTRY, FIXED_RANK, FIXED_START, GOAL, GROUP, GROUP_LEVEL,
    GROUP_TABLES, HOME, HOME_OPTION, LEVEL, LIMIT, LOAD, LOADS, MACHINES, MACHINE_LOAD, MACHINE_OF,
    MACHINE_RANKS, MACHINE_START, MACHINE_WIDE, MOST_REPACKED, MOVED, MOVES, MOVE_BYTES,
    OLD_OPTION, OLD_PLACE, OPTION, PEAKS, PINNED, PLACE, PREFERRED, RANDOM, RANKS, REPACKED,
    REPLICA, RUINED, STATE, STATE_START, TABLES, TALLY, TOGETHER, UNEVEN, WIDE,
)  # fmt: skip

_INTS = types.CPointer(types.int64)
_TYPES = {
    "a": _INTS, "w": types.CPointer(types.float64), "order": _INTS,
    "choice_start": _INTS, "choice": _INTS, "preferences": _INTS, "room": _INTS,
    "heat": types.float64, "change": types.float64, "share": types.float64,
    "span": types.UniTuple(types.int64, 3), "heats": types.UniTuple(types.float64, 2),
    "ladder": types.CPointer(types.float64), "left": types.CPointer(types.float64), "slot": _INTS,
    "mix": types.UniTuple(types.int64, 8), "limits": types.UniTuple(types.float64, 2),
}  # fmt: skip


def kernel(function):
    """Compile for the types that go with the names of arguments (int64: any other name).

    Once a function: left to the types it is called with, most would be compiled several times.
    Arrays are pointers: an array costs seven arguments and four atomic counts of references at
    every call.
    """
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    signature = tuple(_TYPES.get(name, types.int64) for name in names)
    return njit(signature, cache=True, nogil=True)(function)


def entry(function):
    """Compile what Python calls: with arrays."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    kinds = [_TYPES.get(name, types.int64) for name in names]
    arrays = (k.dtype[::1] if isinstance(k, types.CPointer) else k for k in kinds)
    return njit(tuple(arrays), cache=True, nogil=True)(function)


#: Penalties below this are looked at exactly.
_NOTHING = 1e-9
#: Tidying weighs a unit above any capacity by twice this; above the objective by far less.
BROKEN = 5e5
#: Among equally penalised ranks the least loaded is taken: this much of its load counts.
_TIE = 1e-7
#: Of 100 moves under ``step_time``, those that give some of a phase's target to another.
SHIFTS = 2


@kernel
def _random(a, below):
    """A number in [0, below), by xorshift."""
    x = np.uint64(a[RANDOM])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    a[RANDOM] = np.int64(x)
    return np.int64(((x >> np.uint64(33)) * np.uint64(below)) >> np.uint64(31))


@kernel
def _add(a, w, at, values, wide, times):
    """Add ``times`` a row of values (at index ``values``) to loads from ``at`` on; the change."""
    change = 0.0
    load, limit = a[LOAD] + at, a[LIMIT] + at
    for f in range(wide):
        value = a[values + f] * times
        if value:
            before, most = a[load + f], a[limit + f]
            after = before + value
            change += (max(after, most) - max(before, most)) * w[at + f]
            a[load + f] = after
    return change


@kernel
def _would_add(a, w, rank, entry):
    """What one more shard on a rank would change, and a little for what the rank carries."""
    change, wide, at = 0.0, a[WIDE], rank * a[WIDE]
    load, limit, values = a[LOAD] + at, a[LIMIT] + at, a[ENTRY_RANK] + entry * wide
    for f in range(wide):
        before, most = a[load + f], a[limit + f]
        change += (max(before + a[values + f], most) - max(before, most)) * w[at + f]
        if f < a[PEAKS]:
            change += _TIE * before * w[at + f]
    wide = a[MACHINE_WIDE]
    at = a[MACHINE_LOAD] + a[a[MACHINE_OF] + rank] * wide
    load, limit, values = a[LOAD] + at, a[LIMIT] + at, a[ENTRY_MACHINE] + entry * wide
    for f in range(wide):
        before, most = a[load + f], a[limit + f]
        change += (max(before + a[values + f], most) - max(before, most)) * w[at + f]
    return change


@kernel
def _on_rank(a, w, entry, rank, times):
    wide = a[WIDE]
    change = _add(a, w, rank * wide, a[ENTRY_RANK] + entry * wide, wide, times)
    wide = a[MACHINE_WIDE]
    if wide:
        at = a[MACHINE_LOAD] + a[a[MACHINE_OF] + rank] * wide
        change += _add(a, w, at, a[ENTRY_MACHINE] + entry * wide, wide, times)
    return change


@kernel
def _on_assignment(a, w, assignment, place, times):
    """Put an assignment's shards at its place (or take them away)."""
    entry, kind = a[a[ASSIGNMENT_ENTRY] + assignment], a[a[ASSIGNMENT_KIND] + assignment]
    if kind == 0:
        return _on_rank(a, w, entry, place, times)
    change, wide, position = 0.0, a[CLUSTER_WIDE], a[UNEVEN] + a[a[ASSIGNMENT_UNEVEN] + assignment]
    for i in range(a[a[MACHINE_START] + place], a[a[MACHINE_START] + place + 1]):
        if kind == 2:
            entry = a[position]
            position += 1
        change += _on_rank(a, w, entry, a[a[MACHINE_RANKS] + i], times)
        change += _add(a, w, a[CLUSTER_LOAD], a[ENTRY_CLUSTER] + entry * wide, wide, times)
    return change


@kernel
def _on_fixed(a, w, option, times):
    """Put what an option puts on places that it does not choose."""
    wide = a[CLUSTER_WIDE]
    change = _add(a, w, a[CLUSTER_LOAD], a[CLUSTER] + option * wide, wide, times)
    if a[a[EVERYWHERE] + option]:
        wide = a[WIDE]
        for rank in range(a[RANKS]):
            change += _add(a, w, rank * wide, a[EVERY_RANK] + option * wide, wide, times)
        wide = a[MACHINE_WIDE]
        for m in range(a[MACHINES] if wide else 0):
            size = a[a[MACHINE_START] + m + 1] - a[a[MACHINE_START] + m]
            at = a[MACHINE_LOAD] + m * wide
            change += _add(a, w, at, a[EVERY_MACHINE] + option * wide, wide, times * size)
    for i in range(a[a[FIXED_START] + option], a[a[FIXED_START] + option + 1]):
        change += _on_rank(a, w, a[a[FIXED_ENTRY] + i], a[a[FIXED_RANK] + i], times)
    return change


@kernel
def _assignments_of(a, table):
    """First assignment of a table's option, their end, and where an assignment's place is kept,
    less the assignment."""
    option = a[a[OPTION] + table]
    first = a[a[ASSIGNMENT_START] + option]
    return first, a[a[ASSIGNMENT_START] + option + 1], a[PLACE] + a[a[STATE_START] + table] - first


@kernel
def _recount(a, w, table, moved):
    """Let a table count as moved or not; the change of the penalty."""
    if a[MOVES] < 0 or a[a[MOVED] + table] == moved:
        return 0.0
    a[a[MOVED] + table] = moved
    values = a[MOVE_BYTES] + 2 * a[a[OPTION] + table]
    return _add(a, w, a[CLUSTER_LOAD] + a[MOVES], values, 2, 1 if moved else -1)


@kernel
def _away(a, table):
    """1 where a table is not as it is in production, every block as a multiset of places."""
    now = a[a[HOME_OPTION] + table]
    if now == -2:
        return 0
    if now != a[a[OPTION] + table]:
        return 1
    first, end, at = _assignments_of(a, table)
    home = a[HOME] + a[a[STATE_START] + table] - first
    for i in range(first, end):
        here = there = 0
        for j in range(first, end):
            if a[a[ASSIGNMENT_BLOCK] + j] == a[a[ASSIGNMENT_BLOCK] + i]:
                here += a[at + j] == a[at + i]
                there += a[home + j] == a[at + i]
        if here != there:
            return 1
    return 0


@kernel
def _moved(a, table):
    """1 where a table counts as moved: where moves are limited, and it is not at home."""
    return 0 if a[MOVES] < 0 else _away(a, table)


@kernel
def _lift(a, w, table):
    """Take a table away."""
    change, option = _recount(a, w, table, 0), a[a[OPTION] + table]
    change += _on_fixed(a, w, option, -1)
    first, end, at = _assignments_of(a, table)
    for assignment in range(first, end):
        change += _on_assignment(a, w, assignment, a[at + assignment], -1)
    if a[a[GROUP] + option] >= 0:
        a[a[GROUP_TABLES] + a[a[GROUP] + option]] -= 1
    return change


@kernel
def _keep_and_lift(a, w, table):
    """Take a table away, noting where it was to put it back."""
    a[a[OLD_OPTION] + table] = a[a[OPTION] + table]
    for i in range(a[a[STATE_START] + table], a[a[STATE_START] + table + 1]):
        a[a[OLD_PLACE] + i] = a[a[PLACE] + i]
    return _lift(a, w, table)


@kernel
def _settle(a, w, table):
    """What a table counts for once its assignments are taken: its group, and whether it moved."""
    option = a[a[OPTION] + table]
    group = a[a[GROUP] + option]
    if group >= 0:
        a[a[GROUP_TABLES] + group] += 1
        a[a[GROUP_LEVEL] + group] = a[a[LEVEL] + option]
    return _recount(a, w, table, _moved(a, table))


@kernel
def _put(a, w, table, option, places):
    """Put a lifted table at an option and at the places kept in the section at ``places``."""
    a[a[OPTION] + table] = option
    change = _on_fixed(a, w, option, 1)
    first, end, at = _assignments_of(a, table)
    for assignment in range(first, end):
        place = a[places + at - a[PLACE] + assignment]
        a[at + assignment] = place
        change += _on_assignment(a, w, assignment, place, 1)
    return change + _settle(a, w, table)


@kernel
def _undo(a, w, table):
    _lift(a, w, table)
    _put(a, w, table, a[a[OLD_OPTION] + table], a[OLD_PLACE])


@kernel
def _taken(a, table, end, assignment, place):
    """Whether another assignment of the same block, before ``end``, sits there already."""
    block = a[a[ASSIGNMENT_BLOCK] + assignment]
    if not a[a[DISTINCT] + block]:
        return False
    first, _, at = _assignments_of(a, table)
    for j in range(first, end):
        if j != assignment and a[a[ASSIGNMENT_BLOCK] + j] == block and a[at + j] == place:
            return True
    return False


@kernel
def _choose(a, w, table, end, assignment, low, high, most):
    """The least penalised of ``most`` places drawn from ``a[low:high]``; -1: none is free."""
    size = high - low
    begin, found, least = _random(a, size), -1, np.inf
    for k in range(size):
        if k >= most and found >= 0:
            break
        if size <= most or k >= most:
            place = a[low + (begin + k) % size]
        else:
            place = a[low + _random(a, size)]
        if _taken(a, table, end, assignment, place):
            continue
        if a[a[ASSIGNMENT_KIND] + assignment] == 0:
            penalty = _would_add(a, w, place, a[a[ASSIGNMENT_ENTRY] + assignment])
        else:
            penalty = _on_assignment(a, w, assignment, place, 1)
            _on_assignment(a, w, assignment, place, -1)
        if penalty < least:
            found, least = place, penalty
    return found


@kernel
def _domain(a, assignment):
    """Where in ``a`` the domain of an assignment begins and ends."""
    at = a[DOMAIN_START] + a[a[ASSIGNMENT_DOMAIN] + assignment]
    return a[DOMAINS] + a[at], a[DOMAINS] + a[at + 1]


@kernel
def _inside(a, machine):
    """Where in ``a`` the ranks of a machine begin and end."""
    at = a[MACHINE_START] + machine
    return a[MACHINE_RANKS] + a[at], a[MACHINE_RANKS] + a[at + 1]


@kernel
def _admitted(a, assignment, place):
    """Whether a place is in the domain of an assignment."""
    return a[a[ADMITTED] + a[a[ASSIGNMENT_DOMAIN] + assignment] * a[ADMITTED_WIDE] + place] > 0


@kernel
def _admits_all(a, assignment, machine):
    """Whether all ranks of a machine are in the domain of an assignment that is not pinned."""
    if a[a[PINNED] + a[a[ASSIGNMENT_BLOCK] + assignment]]:
        return False
    low, high = _inside(a, machine)
    for i in range(low, high):  # noqa: SIM110 - compiled
        if not _admitted(a, assignment, a[i]):
            return False
    return True


@kernel
def _place(a, w, table, option, most):
    """Put a lifted table at an option, every assignment where it is least penalised.

    Returns the change of the penalty, infinite where shards that must part have too few places.
    """
    a[a[OPTION] + table] = option
    change, block, position = _on_fixed(a, w, option, 1), -1, 0
    first, end, at = _assignments_of(a, table)
    low = high = 0
    for assignment in range(first, end):
        position += 1
        if a[a[ASSIGNMENT_BLOCK] + assignment] != block:
            block, position = a[a[ASSIGNMENT_BLOCK] + assignment], 0
            low, high = _domain(a, assignment)
            machine = a[a[PREFERRED] + table]
            if a[a[TOGETHER] + block]:
                if machine < 0 or not _admitted(a, assignment, machine):
                    machine = a[low + _random(a, high - low)]
                low, high = _inside(a, machine)
            elif (
                machine >= 0
                and a[a[ASSIGNMENT_KIND] + assignment] == 0
                and _admits_all(a, assignment, machine)
            ):
                low, high = _inside(a, machine)
        if a[a[PINNED] + block]:
            place = a[low + position]
        else:
            place = _choose(a, w, table, assignment, assignment, low, high, most)
        if place < 0:
            place, change = a[low], np.inf
        a[at + assignment] = place
        change += _on_assignment(a, w, assignment, place, 1)
    return change + _settle(a, w, table)


@kernel
def _penalty(a, w):
    """The whole penalty, from the loads."""
    total = 0.0
    for i in range(a[LOADS]):
        total += max(0, a[a[LOAD] + i] - a[a[LIMIT] + i]) * w[i]
    return total


@kernel
def _accepted(a, change, heat):
    if change <= 0.0:
        return True
    if change > 30.0 * heat:
        return False
    return _random(a, 1 << 30) < np.exp(-change / heat) * (1 << 30)


@kernel
def _conflicts(a, option, old):
    """Whether tables other than the one at ``old`` (-1: it is lifted) hold the option's fusion
    group at another level."""
    group = a[a[GROUP] + option]
    if group < 0 or a[a[GROUP_LEVEL] + group] == a[a[LEVEL] + option]:
        return False
    mine = 1 if old >= 0 and a[a[GROUP] + old] == group else 0
    return a[a[GROUP_TABLES] + group] > mine


@kernel
def _change_option(a, w, table, option, home, heat, most):
    """A table takes an option, its shards where they are least penalised (or as in production)."""
    change = _keep_and_lift(a, w, table)
    if home:
        change += _put(a, w, table, option, a[HOME])
    else:
        change += _place(a, w, table, option, most)
    if _accepted(a, change, heat):
        return change
    _undo(a, w, table)
    return 0.0


@kernel
def _alike(a, option, other):
    """Whether the places of one option serve the other."""
    first, second = a[a[ASSIGNMENT_START] + option], a[a[ASSIGNMENT_START] + other]
    count = a[a[ASSIGNMENT_START] + option + 1] - first
    if a[a[ASSIGNMENT_START] + other + 1] - second != count:
        return False
    for i in range(count):
        block, there = a[a[ASSIGNMENT_BLOCK] + first + i], a[a[ASSIGNMENT_BLOCK] + second + i]
        if (
            a[a[ASSIGNMENT_DOMAIN] + first + i] != a[a[ASSIGNMENT_DOMAIN] + second + i]
            or a[a[TOGETHER] + block] != a[a[TOGETHER] + there]
            or a[a[DISTINCT] + block] != a[a[DISTINCT] + there]
            or (a[a[ASSIGNMENT_KIND] + first + i] == 0) != (a[a[ASSIGNMENT_KIND] + second + i] == 0)
        ):
            return False
    return True


@kernel
def _options(a):
    """How many options there are: as long as the sections by option."""
    return a[LEVEL] - a[GROUP]


@kernel
def _at_level(a, table, choice_start, choice, like):
    """The table's option at the group and level of ``like``, alike its own if there is one."""
    found = -1
    for i in range(choice_start[table], choice_start[table + 1]):
        option = choice[i]
        if (
            option < _options(a)  # others stand for homes
            and a[a[GROUP] + option] == a[a[GROUP] + like]
            and a[a[LEVEL] + option] == a[a[LEVEL] + like]
        ):
            if _alike(a, a[a[OPTION] + table], option):
                return option
            if found < 0 or _random(a, 2) == 0:
                found = option
    return found


@kernel
def _change_level(a, w, choice_start, choice, like, heat, most):
    """All tables of a fusion group take the level of an option together."""
    group, level, change, end = a[a[GROUP] + like], a[a[LEVEL] + like], 0.0, a[TABLES]
    for t in range(a[TABLES]):
        old = a[a[OPTION] + t]
        if a[a[GROUP] + old] != group:
            continue
        option = _at_level(a, t, choice_start, choice, like)
        if option < 0:
            change, end = np.inf, t
            break
        change += _keep_and_lift(a, w, t)
        if _alike(a, old, option):
            change += _put(a, w, t, option, a[OLD_PLACE])
        else:
            change += _place(a, w, t, option, most)
    if change < np.inf and _accepted(a, change, heat):
        return change
    for t in range(end):
        option = a[a[OPTION] + t]
        if a[a[GROUP] + option] == group and a[a[LEVEL] + option] == level:
            _undo(a, w, t)
    return 0.0


@kernel
def _move_shard(a, w, table, assignment, heat, most):
    """One shard (or machine) goes where it is least penalised."""
    _, end, at = _assignments_of(a, table)
    block, here = a[a[ASSIGNMENT_BLOCK] + assignment], a[at + assignment]
    if a[a[PINNED] + block]:
        return 0.0
    low, high = _domain(a, assignment)
    if a[a[TOGETHER] + block]:
        low, high = _inside(a, a[a[MACHINE_OF] + here])
    change = _on_assignment(a, w, assignment, here, -1)
    place = _choose(a, w, table, end, assignment, low, high, most)
    if place < 0 or place == here:
        _on_assignment(a, w, assignment, here, 1)
        return 0.0
    change += _on_assignment(a, w, assignment, place, 1)
    a[at + assignment] = place
    change += _recount(a, w, table, _moved(a, table))
    if _accepted(a, change, heat):
        return change
    _on_assignment(a, w, assignment, place, -1)
    _on_assignment(a, w, assignment, here, 1)
    a[at + assignment] = here
    _recount(a, w, table, _moved(a, table))
    return 0.0


@kernel
def _admits(a, table, assignment, here, place):
    """Whether an assignment may change to a place that another assignment leaves."""
    block = a[a[ASSIGNMENT_BLOCK] + assignment]
    if a[a[PINNED] + block]:
        return False
    if a[a[TOGETHER] + block]:
        if a[a[MACHINE_OF] + here] != a[a[MACHINE_OF] + place]:
            return False
    elif not _admitted(a, assignment, place):
        return False
    _, end, _ = _assignments_of(a, table)
    return not _taken(a, table, end, assignment, place)


@kernel
def _exchange(a, w, one, i, other, j):
    """Assignments i and j of two tables change places; the change of the penalty."""
    at, to = _assignments_of(a, one)[2] + i, _assignments_of(a, other)[2] + j
    p, q = a[at], a[to]
    change = _on_assignment(a, w, i, p, -1) + _on_assignment(a, w, j, q, -1)
    change += _on_assignment(a, w, i, q, 1) + _on_assignment(a, w, j, p, 1)
    a[at], a[to] = q, p
    change += _recount(a, w, one, _moved(a, one))
    return change + _recount(a, w, other, _moved(a, other))


@kernel
def _swap(a, w, one, i, other, j, heat):
    """Two shards (or machines) change places."""
    p, q = a[_assignments_of(a, one)[2] + i], a[_assignments_of(a, other)[2] + j]
    if p == q or (a[a[ASSIGNMENT_KIND] + i] == 0) != (a[a[ASSIGNMENT_KIND] + j] == 0):
        return 0.0
    if a[a[ASSIGNMENT_BLOCK] + i] != a[a[ASSIGNMENT_BLOCK] + j] and not (
        _admits(a, one, i, p, q) and _admits(a, other, j, q, p)
    ):
        return 0.0
    change = _exchange(a, w, one, i, other, j)
    if _accepted(a, change, heat):
        return change
    _exchange(a, w, one, i, other, j)
    return 0.0


@kernel
def _move_table(a, w, table, choice_start, choice, heat, most):
    """A table takes a random option, or returns to where it is in production."""
    low = choice_start[table]
    count = choice_start[table + 1] - low
    option = choice[low + _random(a, count)]
    home = a[MOVES] >= 0 and a[a[HOME_OPTION] + table] >= 0 and _random(a, 5) == 0
    if home:
        option = a[a[HOME_OPTION] + table]
    elif count == 1 and a[a[ASSIGNMENT_START] + option] == a[a[ASSIGNMENT_START] + option + 1]:
        return 0.0
    if not _conflicts(a, option, a[a[OPTION] + table]):
        return _change_option(a, w, table, option, home, heat, most)
    if home or a[a[GROUP] + a[a[OPTION] + table]] != a[a[GROUP] + option]:
        return 0.0
    return _change_level(a, w, choice_start, choice, option, heat, most)


@kernel
def _busy_rank(a, w):
    """The most penalised of a few ranks, drawn at random."""
    found, least = 0, -1.0
    for _ in range(4):
        rank, over = _random(a, a[RANKS]), 0.0
        for i in range(rank * a[WIDE], (rank + 1) * a[WIDE]):
            over += max(0, a[a[LOAD] + i] - a[a[LIMIT] + i]) * w[i]
        if over > least:
            found, least = rank, over
    return found


@kernel
def _on(a, table, rank):
    """Whether an assignment of a table's option is at a rank (or at its machine)."""
    first, end, at = _assignments_of(a, table)
    for assignment in range(first, end):
        place = a[at + assignment]
        if place == (rank if a[a[ASSIGNMENT_KIND] + assignment] == 0 else a[a[MACHINE_OF] + rank]):
            return True
    return False


@kernel
def _reinsert(a, w, table, choice_start, choice, most):
    """Put a lifted table back at the better of its own option and two others."""
    own, low = a[a[OLD_OPTION] + table], choice_start[table]
    best, least = -1, np.inf
    for k in range(3):
        option = own if k == 0 else choice[low + _random(a, choice_start[table + 1] - low)]
        if _conflicts(a, option, -1):
            continue
        change = _place(a, w, table, option, most)
        if change < least:
            best, least = option, change
        _lift(a, w, table)
    if best < 0:
        return _place(a, w, table, own, most) + np.inf
    return _place(a, w, table, best, most)


@kernel
def _ruin(a, w, choice_start, choice, heat, most):
    """Take some tables away from a busy rank, and put them back one after another."""
    rank, wanted, found, change = _busy_rank(a, w), 2 + _random(a, 4), 0, 0.0
    taken = a[RUINED]
    for _ in range(12 * wanted):
        table = _random(a, a[TABLES])
        again = False
        for i in range(found):
            again = again or a[taken + i] == table
        if not again and (_on(a, table, rank) or _random(a, 16) == 0):
            a[taken + found] = table
            found += 1
            change += _keep_and_lift(a, w, table)
            if found == wanted:
                break
    for i in range(found):
        change += _reinsert(a, w, a[taken + i], choice_start, choice, most)
    if _accepted(a, change, heat):
        return change
    for i in range(found):
        _lift(a, w, a[taken + i])
    for i in range(found):
        table = a[taken + i]
        _put(a, w, table, a[a[OLD_OPTION] + table], a[OLD_PLACE])
    return 0.0


@kernel
def _size(a, w, entry):
    """How large a shard is: the shares of the capacities of a rank that it takes, summed."""
    total = 0.0
    for f in range(a[WIDE]):
        total += a[a[ENTRY_RANK] + entry * a[WIDE] + f] * w[f]
    return total


@kernel
def _gather(a, w, ranks, noise):
    """Note the shards on some ranks (a[ranks - 1] many, from a[ranks] on), the largest first:
    table, assignment, place, size in turn; how many."""
    found, at = 0, a[REPACKED]
    for table in range(a[TABLES]):
        first, end, places = _assignments_of(a, table)
        for assignment in range(first, end):
            if (
                a[a[ASSIGNMENT_KIND] + assignment]
                or a[a[PINNED] + a[a[ASSIGNMENT_BLOCK] + assignment]]
            ):
                continue
            place, here = a[places + assignment], False
            for k in range(a[ranks - 1]):
                here = here or a[ranks + k] == place
            if not here or found >= MOST_REPACKED:
                continue
            size = np.int64(_size(a, w, a[a[ASSIGNMENT_ENTRY] + assignment]) * 1e9)
            size = size * (noise + _random(a, 1024)) // (noise + 512)
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
    """Note a rank and one to three others, drawn; where they are kept, their number before."""
    ranks = a[REPACKED] + 4 * MOST_REPACKED + 1
    a[ranks], many = rank, 1
    for _ in range(1 + _random(a, 3)):
        other, again = _random(a, a[RANKS]), False
        for k in range(many):
            again = again or a[ranks + k] == other
        if not again:
            a[ranks + many] = other
            many += 1
    a[ranks - 1] = many
    return ranks


@kernel
def _best_of(a, w, table, assignment, place, ranks):
    """The least penalised of some ranks that may take an assignment lifted from a place, or −1."""
    _, end, _ = _assignments_of(a, table)
    block, best, least = a[a[ASSIGNMENT_BLOCK] + assignment], -1, np.inf
    for k in range(a[ranks - 1]):
        to = a[ranks + k]
        if a[a[TOGETHER] + block]:
            fits = a[a[MACHINE_OF] + to] == a[a[MACHINE_OF] + place]
        else:
            fits = _admitted(a, assignment, to)
        if not fits or _taken(a, table, end, assignment, to):
            continue
        penalty = _would_add(a, w, to, a[a[ASSIGNMENT_ENTRY] + assignment])
        if penalty < least:
            best, least = to, penalty
    return best


@kernel
def _repack(a, w, rank):
    """Take all shards off a rank and a few others and pack them again, the largest first; the
    change, and how many."""
    ranks, noise = _some_ranks(a, rank), 1 << (8 + _random(a, 8))
    count, change, at = _gather(a, w, ranks, noise), 0.0, a[REPACKED]
    for i in range(count):
        table, assignment, place = a[at + 4 * i], a[at + 4 * i + 1], a[at + 4 * i + 2]
        change += _on_assignment(a, w, assignment, place, -1)
        a[_assignments_of(a, table)[2] + assignment] = -1
    for i in range(count):
        table, assignment, place = a[at + 4 * i], a[at + 4 * i + 1], a[at + 4 * i + 2]
        places, best = _assignments_of(a, table)[2], _best_of(a, w, table, assignment, place, ranks)
        if best < 0:
            best, change = place, np.inf
        a[places + assignment] = best
        change += _on_assignment(a, w, assignment, best, 1)
    for i in range(count):
        table = a[at + 4 * i]
        change += _recount(a, w, table, _moved(a, table))
    return change, count


@kernel
def _unpack(a, w, count):
    """Put shards back to where they were before :func:`_repack`."""
    at = a[REPACKED]
    for i in range(count):
        table, assignment, place = a[at + 4 * i], a[at + 4 * i + 1], a[at + 4 * i + 2]
        places = _assignments_of(a, table)[2]
        _on_assignment(a, w, assignment, a[places + assignment], -1)
        _on_assignment(a, w, assignment, place, 1)
        a[places + assignment] = place
    for i in range(count):
        table = a[at + 4 * i]
        _recount(a, w, table, _moved(a, table))


@kernel
def _repack_move(a, w, heat):
    """Pack a busy rank and some others anew."""
    change, count = _repack(a, w, _busy_rank(a, w))
    if _accepted(a, change, heat):
        return change
    _unpack(a, w, count)
    return 0.0


@kernel
def _option_and_repack(a, w, table, choice_start, choice, heat, most):
    """A table takes another option, and the rank that suffers and some others are packed anew."""
    low = choice_start[table]
    option = choice[low + _random(a, choice_start[table + 1] - low)]
    if _conflicts(a, option, a[a[OPTION] + table]):
        return 0.0
    change = _keep_and_lift(a, w, table)
    change += _place(a, w, table, option, most)
    if change == np.inf:
        _undo(a, w, table)
        return 0.0
    worst, least = -1, -1.0
    first, end, at = _assignments_of(a, table)
    for assignment in range(first, end):
        if a[a[ASSIGNMENT_KIND] + assignment] == 0:
            rank, over = a[at + assignment], 0.0
            for i in range(rank * a[WIDE], (rank + 1) * a[WIDE]):
                over += max(0, a[a[LOAD] + i] - a[a[LIMIT] + i]) * w[i]
            if over > least:
                worst, least = rank, over
    if worst < 0 or least <= 0.0:
        worst = _busy_rank(a, w)
    more, count = _repack(a, w, worst)
    if _accepted(a, change + more, heat):
        return change + more
    _unpack(a, w, count)
    _undo(a, w, table)
    return 0.0


@kernel
def _top(a, phase):
    """The largest load of any rank in a phase."""
    top = 0
    for rank in range(a[RANKS]):
        top = max(top, a[a[LOAD] + rank * a[WIDE] + phase])
    return top


@kernel
def _shift(a, w, heat):
    """Some of a phase's target goes to another phase: what it has to spare, or a random part."""
    p = _random(a, a[PEAKS])
    q = (p + 1 + _random(a, a[PEAKS] - 1)) % a[PEAKS]
    target, more = a[a[LIMIT] + p], a[a[LIMIT] + q]
    part = target - _top(a, p)
    if part <= 0 or _random(a, 2):
        part = target >> (2 + _random(a, 10))
    if part <= 0 or part >= target:
        return 0.0
    change = 0.0
    for rank in range(a[RANKS]):
        at = rank * a[WIDE]
        load, other = a[a[LOAD] + at + p], a[a[LOAD] + at + q]
        change += (max(load, target - part) - max(load, target) + part) * w[at + p]
        change += (max(other, more + part) - max(other, more) - part) * w[at + q]
    if not _accepted(a, change, heat):
        return 0.0
    for rank in range(a[RANKS]):
        a[a[LIMIT] + rank * a[WIDE] + p] = target - part
        a[a[LIMIT] + rank * a[WIDE] + q] = more + part
    return change


@kernel
def _one_move(a, w, choice_start, choice, heat, mix):
    """One random move; the change of the penalty (0 where it is taken back)."""
    if a[PEAKS] > 1 and _random(a, 100) < SHIFTS:
        return _shift(a, w, heat)
    table, kind = _random(a, a[TABLES]), _random(a, 100)
    if kind >= mix[4]:
        which = _random(a, 100)
        if which < mix[5]:
            return _repack_move(a, w, heat)
        if which < mix[6]:
            return _option_and_repack(a, w, table, choice_start, choice, heat, mix[2])
        return _ruin(a, w, choice_start, choice, heat, mix[2])
    first, end, _ = _assignments_of(a, table)
    if kind < mix[0] or first == end:
        return _move_table(a, w, table, choice_start, choice, heat, mix[2])
    assignment = first + _random(a, end - first)
    if kind < mix[1]:
        return _move_shard(a, w, table, assignment, heat, mix[3])
    other = _random(a, a[TABLES])
    first, end, _ = _assignments_of(a, other)
    if first == end:
        return 0.0
    return _swap(a, w, table, assignment, other, first + _random(a, end - first), heat)


@kernel
def _value(a):
    """The objective, from the loads."""
    if a[PEAKS] == 0:
        return a[a[LOAD] + a[CLUSTER_LOAD]]
    value = 0
    for p in range(a[PEAKS]):
        value += _top(a, p)
    return value


@kernel
def _record(a, w, share):
    """Keep the plan met, and aim below it."""
    value = _value(a)
    a[GOAL] = value - max(1, np.int64(abs(value) * share))
    if a[PEAKS] == 0:
        a[a[LIMIT] + a[CLUSTER_LOAD]] = a[GOAL]
    left = value - a[GOAL]
    for p in range(a[PEAKS]):
        top, part = _top(a, p), left
        if p < a[PEAKS] - 1:
            part = min(left, np.int64(np.ceil(top / max(1, value) * (value - a[GOAL]))))
        left -= part
        for rank in range(a[RANKS]):
            a[a[LIMIT] + rank * a[WIDE] + p] = top - part
    if a[TALLY] == 0 or value < a[TALLY + 1]:
        a[TALLY + 1] = value
        for t in range(a[TABLES]):
            a[a[BEST_OPTION] + t] = a[a[OPTION] + t]
        for i in range(a[ASSIGNMENTS]):
            a[a[BEST_PLACE] + i] = a[a[PLACE] + i]
    a[TALLY] += 1


@kernel
def _anneal(a, w, order, count, choice_start, choice, span, heats, mix, limits):
    for i in range(count):
        table = order[i]
        if mix[7]:
            _place(a, w, table, a[a[OLD_OPTION] + table], mix[7])
        else:
            _put(a, w, table, a[a[OLD_OPTION] + table], a[OLD_PLACE])
    penalty, heat = _penalty(a, w), heats[0]
    for n in range(span[0], span[1]):
        while penalty < _NOTHING:
            penalty = _penalty(a, w)
            if penalty > 0.0:
                break
            _record(a, w, limits[0])
            penalty = _penalty(a, w)
            if a[TALLY + 1] <= limits[1]:
                return penalty
        if n % 256 == 0 or n == span[0]:
            heat = heats[0] * (heats[1] / heats[0]) ** (n / span[2])
        penalty += _one_move(a, w, choice_start, choice, heat, mix)
    return _penalty(a, w)


@entry
def anneal(a, w, order, choice_start, choice, span, heats, mix, limits):
    """Place tables, then make moves ``span[0]`` to ``span[1]`` of ``span[2]``, cooling
    geometrically; the penalty at the end.

    Parameters
    ----------
    order : int64 array
        Tables to place first, at ``OLD_OPTION``: at ``OLD_PLACE``, or (``mix[7]`` above 0) where
        they are least penalised of so many places.
    choice_start, choice : int64 arrays
        Options that moves choose from, by table.
    span : three ints
    heats : two floats
        Temperatures at the first and at the last of all moves.
    mix : eight ints
        Of 100 moves, those below mix[0] change an option, below mix[1] move a shard, below mix[4]
        swap two; of 100 of the others, those below mix[5] pack some ranks anew, below mix[6] after
        an option was changed, the rest ruin and put back. mix[2] places are looked at for a shard
        of an option, mix[3] for a single one.
    limits : two floats
        A plan without penalty is kept and the target lowered by this share below it; one as cheap
        as the second ends the run.
    """
    return _anneal(
        a.ctypes, w.ctypes, order.ctypes, len(order), choice_start.ctypes, choice.ctypes,
        span, heats, mix, limits,
    )  # fmt: skip


@kernel
def _select(a, replica):
    """Let the names point to the sections of a replica."""
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
    """Let the names point to the sections of a replica."""
    _select(a.ctypes, replica)


@kernel
def _aim(a):
    """Set the target of this replica to the one of all, in the shares that its phases have."""
    if a[PEAKS] == 0:
        a[a[LIMIT] + a[CLUSTER_LOAD]] = a[GOAL]
    total = 0
    for p in range(a[PEAKS]):
        total += max(0, a[a[LIMIT] + p])
    for p in range(a[PEAKS]):
        target = a[GOAL]
        if a[PEAKS] > 1:
            share = max(0, a[a[LIMIT] + p]) / total if total else 1 / a[PEAKS]
            target = np.int64(share * a[GOAL])
        for rank in range(a[RANKS]):
            a[a[LIMIT] + rank * a[WIDE] + p] = target


@kernel
def _temper(a, w, choice_start, choice, ladder, slot, left, count, rounds, burst, mix, limits):
    for n in range(rounds):
        for i in range(count):
            _select(a, slot[i])
            _aim(a)
            heats = (ladder[i], ladder[i])
            left[i] = _anneal(
                a, w, slot, 0, choice_start, choice, (0, burst, burst), heats, mix, limits
            )
            if a[TALLY] and a[TALLY + 1] <= limits[1]:
                return
        for i in range(n % 2, count - 1, 2):
            gain = (1 / ladder[i + 1] - 1 / ladder[i]) * (left[i] - left[i + 1])
            if gain <= 0.0 or _random(a, 1 << 30) < np.exp(-gain) * (1 << 30):
                slot[i], slot[i + 1] = slot[i + 1], slot[i]
                left[i], left[i + 1] = left[i + 1], left[i]


@entry
def temper(a, w, choice_start, choice, ladder, slot, left, rounds, burst, mix, limits):
    """Anneal replicas, each at its own temperature, and exchange them between neighbours.

    Parameters
    ----------
    ladder : float64 array
        Temperatures, the hottest first.
    slot : int64 array
        Replica at each temperature.
    left : float64 array
        Set to the penalty of each.
    rounds, burst : int
        Exchanges, and moves of every replica before each.
    """
    _temper(
        a.ctypes, w.ctypes, choice_start.ctypes, choice.ctypes, ladder.ctypes, slot.ctypes,
        left.ctypes, len(slot), rounds, burst, mix, limits,
    )  # fmt: skip


@kernel
def _aim_here(a):
    """Set the target of every phase to its present peak: what goes beyond costs the objective."""
    if a[PEAKS] == 0:
        a[a[LIMIT] + a[CLUSTER_LOAD]] = a[a[LOAD] + a[CLUSTER_LOAD]]
    for p in range(a[PEAKS]):
        top = _top(a, p)
        for rank in range(a[RANKS]):
            a[a[LIMIT] + rank * a[WIDE] + p] = top


@kernel
def _takes(a, w, table, option, home, most):
    """Whether a table takes an option, the objective at most ``most`` and no capacity broken; it
    stays as it is otherwise."""
    _keep_and_lift(a, w, table)
    _aim_here(a)
    if home:  # noqa: SIM108
        change = _put(a, w, table, option, a[HOME])
    else:
        change = _place(a, w, table, option, a[RANKS])
    if change < BROKEN and _value(a) <= most:
        return True
    _undo(a, w, table)
    return False


@kernel
def _preference(a, table, preferences):
    """How much less preferred than the best a table's state is."""
    option = a[a[OPTION] + table]
    home = a[a[HOME_OPTION] + table] == option and not _away(a, table)
    return preferences[option + _options(a)] if home else preferences[option]


@kernel
def _preference_sum(a, preferences):
    total = 0
    for table in range(a[TABLES]):
        total += _preference(a, table, preferences)
    return total


@entry
def preference_sum(a, preferences):
    """Sum over tables of the preferences of their states."""
    return _preference_sum(a.ctypes, preferences.ctypes)


@kernel
def _take_together(a, w, choice_start, choice, preferences, like, most):
    """Whether all tables of a fusion group take the level of an option, at which none is preferred
    less."""
    group, before = a[a[GROUP] + like], 0
    for t in range(a[TABLES]):
        if a[a[GROUP] + a[a[OPTION] + t]] == group:
            if _at_level(a, t, choice_start, choice, like) < 0:
                return False
            before += _preference(a, t, preferences)
    _aim_here(a)
    change = _change_level(a, w, choice_start, choice, like, 1e300, a[RANKS])
    after = worse = 0
    for t in range(a[TABLES]):
        if a[a[GROUP] + a[a[OPTION] + t]] == group:
            old = a[a[OLD_OPTION] + t]
            old += _options(a) if a[a[HOME_OPTION] + t] == old else 0
            after += _preference(a, t, preferences)
            worse += _preference(a, t, preferences) > preferences[old]
    if change < BROKEN and after < before and worse == 0 and _value(a) <= most:
        return True
    for t in range(a[TABLES]):
        if a[a[GROUP] + a[a[OPTION] + t]] == group:
            _undo(a, w, t)
    return False


@kernel
def _changed_level(a, w, table, choice_start, choice, preferences, most):
    """Whether a table's fusion group takes another level, at which it is more preferred."""
    own = a[a[OPTION] + table]
    for i in range(choice_start[table], choice_start[table + 1]):
        like = choice[i]
        if like >= _options(a) or a[a[GROUP] + like] != a[a[GROUP] + own]:
            continue
        better = preferences[like] < _preference(a, table, preferences) and _conflicts(a, like, own)
        if better and _take_together(a, w, choice_start, choice, preferences, like, most):
            return True
    return False


@kernel
def _improved(a, w, table, choice_start, choice, preferences, most):
    """Whether a table takes the most preferred state it can, better than its own."""
    options, own = _options(a), _preference(a, table, preferences)
    for i in range(choice_start[table], choice_start[table + 1]):
        if preferences[choice[i]] >= own:
            return False
        option, home = choice[i] % options, choice[i] // options
        free = not _conflicts(a, option, a[a[OPTION] + table])
        if free and _takes(a, w, table, option, home, most):
            return True
    return False


@kernel
def _at(a, assignment, place, load, wide):
    """Whether an assignment's place is, or has a part in, the rank or machine of a load."""
    machine = place if a[a[ASSIGNMENT_KIND] + assignment] else a[a[MACHINE_OF] + place]
    if load >= a[MACHINE_LOAD]:
        return machine == (load - a[MACHINE_LOAD]) // wide
    if a[a[ASSIGNMENT_KIND] + assignment]:
        return machine == a[a[MACHINE_OF] + load // wide]
    return place == load // wide


@kernel
def _relieves(a, w, table, load, wide, most):
    """Whether a shard of a table leaves the place of a load for one that it leaves less full."""
    first, end, at = _assignments_of(a, table)
    for assignment in range(first, end):
        here, block = a[at + assignment], a[a[ASSIGNMENT_BLOCK] + assignment]
        if a[a[PINNED] + block] or not _at(a, assignment, here, load, wide):
            continue
        begin, stop = _domain(a, assignment)
        if a[a[TOGETHER] + block]:
            begin, stop = _inside(a, a[a[MACHINE_OF] + here])
        change = _on_assignment(a, w, assignment, here, -1)
        place = _choose(a, w, table, end, assignment, begin, stop, a[RANKS]) if change < 0 else here
        if place < 0:
            place = here
        change += _on_assignment(a, w, assignment, place, 1)
        a[at + assignment] = place
        change += _recount(a, w, table, _moved(a, table))
        if place != here and change < -BROKEN and _value(a) <= most:
            return True
        _on_assignment(a, w, assignment, place, -1)
        _on_assignment(a, w, assignment, here, 1)
        a[at + assignment] = here
        _recount(a, w, table, _moved(a, table))
    return False


@kernel
def _fullest(a, room, low, high, wide):
    """The load with the largest share of its room, every limit set below that share; -1: none."""
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
    """Whether a shard of any table leaves the place of a load."""
    for n in range(count):  # noqa: SIM110 - compiled
        if _relieves(a, w, order[n], full, wide, most):
            return True
    return False


@kernel
def _even(a, w, room, order, count, low, high, wide, most):
    for _ in range(4 * a[TABLES]):
        full = _fullest(a, room, low, high, wide)
        _aim_here(a)
        if full < 0 or not _relieved(a, w, order, count, full, wide, most):
            break
    for i in range(low, high, wide):
        a[a[LIMIT] + i] = room[i]


@entry
def even(a, w, room, order, low, high, wide, most):
    """Shards leave the place where a resource is fullest, as long as that lowers how full it is.

    Parameters
    ----------
    room : int64 array
        The limit of every load.
    order : int64 array
        Tables to ask, in turn.
    low, high, wide : int
        Loads of the resource: every ``wide``-th from ``low`` to ``high``.
    most : int
        What the objective may be.
    """
    _even(a.ctypes, w.ctypes, room.ctypes, order.ctypes, len(order), low, high, wide, most)


@kernel
def _tidy(a, w, order, count, choice_start, choice, preferences, most):
    for _ in range(20):
        changed = 0
        for n in range(count):
            table = order[n]
            changed += _improved(a, w, table, choice_start, choice, preferences, most)
            if a[a[GROUP] + a[a[OPTION] + table]] >= 0:
                changed += _changed_level(a, w, table, choice_start, choice, preferences, most)
        if not changed:
            break


@entry
def tidy(a, w, order, choice_start, choice, preferences, most):
    """Table after table takes the most preferred state that keeps the objective at ``most`` and
    breaks no capacity, fusion groups change their level together, until nothing changes.

    Parameters
    ----------
    choice_start, choice : int64 arrays
        States of every table, the most preferred first: options placed anywhere, and (the number
        of options more) the one in production where it is there.
    preferences : int64 array
        Of every such state, the least is the best.
    """
    _tidy(
        a.ctypes, w.ctypes, order.ctypes, len(order), choice_start.ctypes, choice.ctypes,
        preferences.ctypes, most,
    )  # fmt: skip
