# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""The compiled loops of the tier simulator: one batch through HBM, and through the host if asked.

Scores lie beside each other, bucket by bucket, so a hit writes one slot, and what a batch pushes
out of a bucket is found in one pass over its slots. Among equal scores the lowest slot goes first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PLACE, STAMP, COUNT, HOME = 0, 1, 2, 3
"""Columns of ``rows``: slot (−1 nowhere, from ``hbm_slots`` on the host), batch of the last
lookup, lookups so far, HBM bucket."""

LOOKUPS, UNIQUE, HITS, UNIQUE_HITS, HOST_HITS, NEW, EVICTED, DROPPED, BYPASSED = range(9)
"""Columns of ``counts``, one row a rank."""

FEW = 32
"""Up to so many victims of a bucket are kept sorted while its slots pass by."""


@njit(nogil=True, cache=True)
def look_up(rows, keys, now, hbm_slots, per_rank, slots, frequency, unique, before, counts):  # type: ignore[no-untyped-def]
    """First pass: what HBM and the host serve; scores rise.

    ``slots`` holds score and batch of the last lookup of every slot, HBM's first; a cache's host
    has none. Leaves the rows that HBM lacks at the front of ``unique``; returns how many they are.
    """
    found, misses = 0, 0
    for key in keys:
        rows[key, COUNT] += 1
        if rows[key, STAMP] != now:
            rows[key, STAMP] = now
            unique[found] = key
            before[found] = rows[key, COUNT] - 1
            found += 1
    for i in range(found):
        key = unique[i]
        place = rows[key, PLACE]
        times = rows[key, COUNT] - before[i]
        rank = rows[key, HOME] // per_rank
        counts[rank, LOOKUPS] += times
        counts[rank, UNIQUE] += 1
        if 0 <= place < len(slots):
            slots[place, 0] = rows[key, COUNT] if frequency else now
            slots[place, 1] = now
        if 0 <= place < hbm_slots:
            counts[rank, HITS] += times
            counts[rank, UNIQUE_HITS] += 1
            continue
        counts[rank, HOST_HITS if place >= 0 else NEW] += 1
        unique[misses] = key
        misses += 1
    return misses


@njit(nogil=True, cache=True)
def by_bucket(homes, keys, start, grouped):  # type: ignore[no-untyped-def]
    """Group rows by bucket, each bucket's in their order (a counting sort).

    Bucket b's end up in ``grouped[start[b]:start[b + 1]]``.
    """
    start[:] = 0
    for key in keys:
        start[homes[key] + 2] += 1
    for bucket in range(2, len(start)):
        start[bucket] += start[bucket - 1]
    for key in keys:
        bucket = homes[key] + 1
        grouped[start[bucket]] = key
        start[bucket] += 1


@njit(nogil=True, cache=True)
def _lowest(slots, base, capacity, pinned_at, wanted, found):  # type: ignore[no-untyped-def]
    """Slots of a bucket with the lowest scores, lowest first, in ``found``; returns how many.

    Slots whose row was looked up in batch ``pinned_at`` are left out.
    """
    size = 0
    for slot in range(capacity):
        if slots[base + slot, 1] == pinned_at:
            continue
        entry = np.int64(slots[base + slot, 0]) << 32 | slot
        if wanted > FEW or size < wanted:
            size += 1
        elif entry >= found[size - 1]:
            continue
        i = size - 1
        if wanted <= FEW:
            while i > 0 and found[i - 1] > entry:
                found[i] = found[i - 1]
                i -= 1
        found[i] = entry
    if wanted > FEW:
        if wanted < size:
            found[:size] = np.partition(found[:size], wanted - 1)
            size = wanted
        found[:size].sort()
    return size


@njit(nogil=True, cache=True)
def insert(rows, grouped, start, tier, slots, offset, pinned_at, frequency, leaving):  # type: ignore[no-untyped-def]
    """Place rows grouped by bucket: in free slots, then in those of the lowest scores.

    Rows inserted here push none of each other out. Victims, and rows no slot was left for, are
    listed in ``leaving``; returns how many they are.
    """
    held, fill, capacity = tier
    found, left = np.empty(capacity, np.int64), 0
    for bucket in range(len(fill)):
        first, last = start[bucket], start[bucket + 1]
        if first == last:
            continue
        base, free = bucket * capacity, capacity - fill[bucket]
        room, victims = min(free, last - first), 0
        if last - first > free:
            stop = fill[bucket]
            victims = _lowest(
                slots, offset + base, stop, pinned_at, min(last - first - free, stop), found
            )
        for i in range(last - first):
            key = grouped[first + i]
            if i < room:
                slot = fill[bucket] + i
            elif i < room + victims:
                slot = found[i - room] & 0xFFFFFFFF
                leaving[left] = held[base + slot]
                left += 1
            else:
                leaving[left] = key
                left += 1
                continue
            held[base + slot] = key
            place = offset + base + slot
            rows[key, PLACE] = place
            slots[place, 0] = rows[key, COUNT if frequency else STAMP]
            slots[place, 1] = rows[key, STAMP]
        fill[bucket] += room
    return left


@njit(nogil=True, cache=True)
def write_back(rows, leaving, now, hbm_slots, per_rank, counts):  # type: ignore[no-untyped-def]
    """CACHING: rows pushed out, and those of batch ``now`` that found no slot, are on the host."""
    for key in leaving:
        rows[key, PLACE] = hbm_slots
        column = BYPASSED if rows[key, STAMP] == now else EVICTED
        counts[rows[key, HOME] // per_rank, column] += 1


@njit(nogil=True, cache=True)
def lose(rows, leaving, per_rank, counts):  # type: ignore[no-untyped-def]
    """Rows that no tier holds: new when they come again."""
    for key in leaving:
        rows[key, PLACE] = -1
        rows[key, COUNT] = 0
        counts[rows[key, HOME] // per_rank, DROPPED] += 1


@njit(nogil=True, cache=True)
def only_new(rows, missing, kept):  # type: ignore[no-untyped-def]
    """The missing rows that no tier holds, in ``kept``; returns how many."""
    size = 0
    for key in missing:
        if rows[key, PLACE] < 0:
            kept[size] = key
            size += 1
    return size
