"""Loads of ranks, machines and the cluster: what shards add, and by how much limits are
exceeded."""

from __future__ import annotations

from formulations.search.anneal_data import (
    ASSIGNMENT_UNEVEN,
    CLUSTER,
    CLUSTER_LOAD,
    CLUSTER_WIDE,
    ENTRY_CLUSTER,
    ENTRY_MACHINE,
    ENTRY_RANK,
    EVERY_MACHINE,
    EVERY_RANK,
    EVERYWHERE,
    FIXED_ENTRY,
    FIXED_RANK,
    FIXED_START,
    HIDDEN,
    LIMIT,
    LOAD,
    LOADS,
    MACHINE_LOAD,
    MACHINE_RANKS,
    MACHINE_START,
    MACHINE_WIDE,
    MACHINES,
    PEAKS,
    RANKS,
    UNEVEN,
    WIDE,
)
from formulations.search.kernels.compiled import kernel
from formulations.search.kernels.views import entry_of, kind_of, machine_of


@kernel
def add(a, w, at, values, wide, times):
    """Add ``times`` × a row of values (from index ``values``) to the loads from ``at`` on; returns
    the change of the penalty."""
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
def would_add(a, w, rank, entry):
    """The change of the penalty by one more shard on a rank, plus a little for what it lies on; the
    share of that stands behind the weights of all loads."""
    change, wide, at, tie = 0.0, a[WIDE], rank * a[WIDE], w[a[LOADS]]
    load, limit, values = a[LOAD] + at, a[LIMIT] + at, a[ENTRY_RANK] + entry * wide
    for f in range(wide):
        before, most, value = a[load + f], a[limit + f], a[values + f]
        change += (max(before + value, most) - max(before, most)) * w[at + f]
        change += tie * (before * w[at + f]) * (value * w[at + f])
    wide = a[MACHINE_WIDE]
    at = a[MACHINE_LOAD] + machine_of(a, rank) * wide
    load, limit, values = a[LOAD] + at, a[LIMIT] + at, a[ENTRY_MACHINE] + entry * wide
    for f in range(wide):
        before, most = a[load + f], a[limit + f]
        change += (max(before + a[values + f], most) - max(before, most)) * w[at + f]
    return change


@kernel
def on_rank(a, w, entry, rank, times):
    wide = a[WIDE]
    change = add(a, w, rank * wide, a[ENTRY_RANK] + entry * wide, wide, times)
    wide = a[MACHINE_WIDE]
    if wide:
        at = a[MACHINE_LOAD] + machine_of(a, rank) * wide
        change += add(a, w, at, a[ENTRY_MACHINE] + entry * wide, wide, times)
    return change


@kernel
def on_assignment(a, w, assignment, place, times):
    """Put an assignment's shards at its place (or take them away)."""
    entry, kind = entry_of(a, assignment), kind_of(a, assignment)
    if kind == 0:
        return on_rank(a, w, entry, place, times)
    change, wide, position = 0.0, a[CLUSTER_WIDE], a[UNEVEN] + a[a[ASSIGNMENT_UNEVEN] + assignment]
    for i in range(a[a[MACHINE_START] + place], a[a[MACHINE_START] + place + 1]):
        if kind == 2:
            entry = a[position]
            position += 1
        change += on_rank(a, w, entry, a[a[MACHINE_RANKS] + i], times)
        change += add(a, w, a[CLUSTER_LOAD], a[ENTRY_CLUSTER] + entry * wide, wide, times)
    return change


@kernel
def on_fixed(a, w, option, times):
    """Add what an option puts on places that it does not choose."""
    wide = a[CLUSTER_WIDE]
    change = add(a, w, a[CLUSTER_LOAD], a[CLUSTER] + option * wide, wide, times)
    if a[a[EVERYWHERE] + option]:
        wide = a[WIDE]
        for rank in range(a[RANKS]):
            change += add(a, w, rank * wide, a[EVERY_RANK] + option * wide, wide, times)
        wide = a[MACHINE_WIDE]
        for m in range(a[MACHINES] if wide else 0):
            size = a[a[MACHINE_START] + m + 1] - a[a[MACHINE_START] + m]
            at = a[MACHINE_LOAD] + m * wide
            change += add(a, w, at, a[EVERY_MACHINE] + option * wide, wide, times * size)
    for i in range(a[a[FIXED_START] + option], a[a[FIXED_START] + option + 1]):
        change += on_rank(a, w, a[a[FIXED_ENTRY] + i], a[a[FIXED_RANK] + i], times)
    return change


@kernel
def penalty_of(a, w):
    """The whole penalty, computed from the loads."""
    total = 0.0
    for i in range(a[LOADS]):
        total += max(0, a[a[LOAD] + i] - a[a[LIMIT] + i]) * w[i]
    return total


@kernel
def hidden_in(a, phase):
    """The time that is hidden in a phase."""
    return a[a[HIDDEN] + phase]


@kernel
def top_load(a, phase):
    """The largest load of any rank in a phase, beyond what is hidden."""
    top = hidden_in(a, phase)
    for rank in range(a[RANKS]):
        top = max(top, a[a[LOAD] + rank * a[WIDE] + phase])
    return top - hidden_in(a, phase)


@kernel
def value_of(a):
    """The objective, computed from the loads."""
    if a[PEAKS] == 0:
        return a[a[LOAD] + a[CLUSTER_LOAD]]
    value = 0
    for p in range(a[PEAKS]):
        value += top_load(a, p)
    return value
