# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""The compiled loops of the tier simulator: one batch through HBM, and through the host if asked.

Scores lie beside each other, bucket by bucket, so a hit writes one slot, and whom a batch pushes
out of a bucket is found while its slots are in the first-level cache. Among equal scores the lowest
slot goes first. Where a branch would depend on the key, numbers are added up instead: such
branches are guessed wrong too often.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PLACE, STAMP, COUNT, HOME = 0, 1, 2, 3
"""Columns of ``rows``: slot (−1 nowhere, from ``hbm_slots`` on the host), batch of the last
lookup, lookups so far, HBM bucket."""

IN_HBM, ON_HOST, NOWHERE = 0, 1, 2
"""Where a lookup found its row: second axis of ``seen``."""

AHEAD = 256
"""Rows and slots of so many lookups are read before any is written: loads that miss the cache
overlap, stores that miss it queue."""

BINS = 64
"""Scores told apart, from the lowest, when victims are counted out."""


@njit(nogil=True, cache=True)
def look_up(rows, keys, now, hbm_slots, rank_of, slots, frequency, served, missing, homes, seen):  # type: ignore[no-untyped-def]
    """First pass: where every lookup finds its row; scores rise.

    ``slots`` holds score and batch of the last lookup of every slot, HBM's first, and one more
    that takes the scores of rows without a slot. ``seen[rank, where, first]`` counts lookups,
    the first of a row in the batch apart. Rows found behind ``served`` are left, once each, in
    ``missing``, their buckets in ``homes``; returns how many they are (and a sum of no meaning,
    without which the compiler would drop the loads ahead).
    """
    size, ahead = 0, 0
    for block in range(0, len(keys), AHEAD):
        part = keys[block : block + AHEAD]
        for key in part:
            ahead += slots[rows[key, PLACE], 0]
        for key in part:
            first = rows[key, STAMP] != now
            rows[key, STAMP] = now
            rows[key, COUNT] += 1
            place, home = rows[key, PLACE], rows[key, HOME]
            slots[place, 0] = rows[key, COUNT] if frequency else now
            slots[place, 1] = now
            where = (place < 0) * NOWHERE + (place >= hbm_slots) * ON_HOST
            seen[rank_of[home], where, np.int64(first)] += 1
            missing[size] = key
            homes[size] = home
            size += first & (where > served)
    return size, ahead


@njit(nogil=True, cache=True)
def by_bucket(keys, homes, start, grouped):  # type: ignore[no-untyped-def]
    """Group rows by bucket, each bucket's in their order (a counting sort).

    Bucket b's end up in ``grouped[start[b]:start[b + 1]]``.
    """
    start[:] = 0
    for home in homes:
        start[home + 2] += 1
    for bucket in range(2, len(start)):
        start[bucket] += start[bucket - 1]
    for i in range(len(keys)):
        bucket = homes[i] + 1
        grouped[start[bucket]] = keys[i]
        start[bucket] += 1


@njit(nogil=True, cache=True)
def _lowest(slots, pinned_at, wanted, bins, found):  # type: ignore[no-untyped-def]
    """Slots of a bucket with the lowest scores, lowest first, in ``found``; returns how many.

    Slots whose row was looked up in batch ``pinned_at`` are left out. Rows of the lowest score
    leave first, so few scores lie between it and the last victim's: they are counted out.
    """
    free, low = 0, np.int32(2**31 - 1)
    for slot in range(len(slots)):
        if slots[slot, 1] != pinned_at:
            free += 1
            low = min(low, slots[slot, 0])
    wanted = min(wanted, free)
    bins[:] = 0
    for slot in range(len(slots)):
        above = slots[slot, 0] - low
        if above < BINS and slots[slot, 1] != pinned_at:
            bins[above] += 1
    below, last = 0, 0
    while last < BINS and below < wanted:
        bins[last], below = below, below + bins[last]
        last += 1
    if below < wanted:
        return _sorted_out(slots, pinned_at, wanted, found)
    for slot in range(len(slots)):
        above = slots[slot, 0] - low
        if above < last and slots[slot, 1] != pinned_at:
            found[bins[above]] = slot
            bins[above] += 1
    return wanted


@njit(nogil=True, cache=True)
def _sorted_out(slots, pinned_at, wanted, found):  # type: ignore[no-untyped-def]
    """The same, whatever the scores are."""
    entries, size = np.empty(len(slots), np.int64), 0
    for slot in range(len(slots)):
        if slots[slot, 1] != pinned_at:
            entries[size] = np.int64(slots[slot, 0]) << 32 | slot
            size += 1
    entries = np.sort(np.partition(entries[:size], wanted - 1)[:wanted])
    for i in range(wanted):
        found[i] = entries[i] & 0xFFFFFFFF
    return wanted


@njit(nogil=True, cache=True)
def insert(rows, grouped, start, tier, slots, offset, pinned_at, frequency, away, leaving, moved):  # type: ignore[no-untyped-def]
    """Place rows grouped by bucket: in free slots, then in those of the lowest scores.

    Rows inserted here push none of each other out. Victims, and rows no slot was left for, get the
    place ``away`` and are listed in ``leaving``; returns how many they are.
    ``moved[rank]`` counts the ones and the others.
    """
    held, fill, capacity = tier
    found, bins = np.empty(capacity, np.int32), np.empty(BINS, np.int32)
    left, per_rank = 0, len(fill) // len(moved)
    for bucket in range(len(fill)):
        first, last = start[bucket], start[bucket + 1]
        if first == last:
            continue
        base, stop = bucket * capacity, fill[bucket]
        room, victims = min(capacity - stop, last - first), 0
        for i in range(room):
            found[i] = stop + i
        if room < last - first:
            bucket_slots = slots[offset + base : offset + base + stop]
            need = min(last - first - room, stop)
            victims = _lowest(bucket_slots, pinned_at, need, bins, found[room:])
            for i in range(room, room + victims):
                leaving[left] = held[base + found[i]]
                left += 1
            for i in range(first + room + victims, last):
                leaving[left] = grouped[i]
                left += 1
        for i in range(room + victims):
            key, slot = grouped[first + i], base + found[i]
            held[slot] = key
            rows[key, PLACE] = offset + slot
            slots[offset + slot, 0] = rows[key, COUNT if frequency else STAMP]
            slots[offset + slot, 1] = rows[key, STAMP]
        fill[bucket] += room
        moved[bucket // per_rank, 0] += victims
        moved[bucket // per_rank, 1] += last - first - room - victims
    for key in leaving[:left]:
        rows[key, PLACE] = away
    return left
