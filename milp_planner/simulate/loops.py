# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""The compiled loop of the tier simulator: one batch through HBM, and through the host if asked.

Every bucket keeps its scores in a binary heap whose entries may lag behind (scores only rise while
a row is resident, so a stale entry is a lower bound): a hit costs one memory access, an eviction a
few steps down the heap. Entries are score · 2**32 + slot, so equal scores go by the lowest slot.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PLACE, STAMP, COUNT, HOME = 0, 1, 2, 3
"""Columns of ``rows``: slot (−1 nowhere, from ``hbm_slots`` on the host), batch of the last
lookup, lookups so far, HBM bucket."""

LOOKUPS, UNIQUE, HITS, UNIQUE_HITS, HOST_HITS, NEW, EVICTED, DROPPED, BYPASSED = range(9)
"""Columns of ``counts``, one row a rank."""

_SLOT = np.int64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def _entry(rows, key, slot, frequency):  # type: ignore[no-untyped-def]
    return np.int64(rows[key, COUNT if frequency else STAMP]) << 32 | slot


@njit(nogil=True, cache=True)
def _sink(heap, base, size, entry):  # type: ignore[no-untyped-def]
    """Put an entry at the root and restore the heap."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[base + child + 1] < heap[base + child]:
            child += 1
        if heap[base + child] >= entry:
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = entry


@njit(nogil=True, cache=True)
def _push(heap, base, size, entry):  # type: ignore[no-untyped-def]
    """Add an entry behind the last one."""
    i = size
    while i > 0 and heap[base + (i - 1) // 2] > entry:
        heap[base + i] = heap[base + (i - 1) // 2]
        i = (i - 1) // 2
    heap[base + i] = entry


@njit(nogil=True, cache=True)
def _lowest(rows, tier, bucket, frequency, pinned_at, waiting, waits):  # type: ignore[no-untyped-def]
    """Take the slot with the lowest score out of a bucket's heap; −1 where all are protected.

    Slots inserted in this batch are not in the heap; those whose row was looked up in batch
    ``pinned_at`` are set aside in ``waiting``. Returns the slot and how many wait.
    """
    held, heap, sizes, _, capacity = tier
    base = bucket * capacity
    while sizes[bucket] > 0:
        slot = np.int64(heap[base] & _SLOT)
        key = held[base + slot]
        pinned = rows[key, STAMP] == pinned_at
        actual = _entry(rows, key, slot, frequency)
        if actual != heap[base] and not pinned:
            _sink(heap, base, sizes[bucket], actual)
            continue
        sizes[bucket] -= 1
        _sink(heap, base, sizes[bucket], heap[base + sizes[bucket]])
        if not pinned:
            return slot, waits
        waiting[waits] = base + slot
        waits += 1
    return np.int64(-1), waits


@njit(nogil=True, cache=True)
def _return(rows, tier, frequency, waiting, waits):  # type: ignore[no-untyped-def]
    """Put every waiting slot back into the heap of its bucket."""
    held, heap, sizes, _, capacity = tier
    for i in range(waits):
        bucket, slot = waiting[i] // capacity, waiting[i] % capacity
        entry = _entry(rows, held[waiting[i]], np.int64(slot), frequency)
        _push(heap, bucket * capacity, sizes[bucket], entry)
        sizes[bucket] += 1


@njit(nogil=True, cache=True)
def _place(rows, key, bucket, tier, frequency, pinned_at, waiting, waits):  # type: ignore[no-untyped-def]
    """Find a slot for a row: free, or the lowest score's.

    Returns the slot (−1 for none), the row that was there (−1 for none) and how many slots wait.
    """
    held, _, _, fill, capacity = tier
    if fill[bucket] < capacity:
        slot, victim = np.int64(fill[bucket]), np.int64(-1)
        fill[bucket] += 1
    else:
        slot, waits = _lowest(rows, tier, bucket, frequency, pinned_at, waiting, waits)
        if slot < 0:
            return slot, np.int64(-1), waits
        victim = np.int64(held[bucket * capacity + slot])
    held[bucket * capacity + slot] = key
    waiting[waits] = bucket * capacity + slot
    return slot, victim, waits + 1


@njit(nogil=True, cache=True)
def look_up(rows, keys, now, hbm_slots, per_rank, unique, before, counts):  # type: ignore[no-untyped-def]
    """First pass: what HBM and the host serve; scores rise.

    Leaves the rows that HBM lacks at the front of ``unique`` and returns how many they are.
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
        if 0 <= place < hbm_slots:
            counts[rank, HITS] += times
            counts[rank, UNIQUE_HITS] += 1
            continue
        counts[rank, HOST_HITS if place >= 0 else NEW] += 1
        unique[misses] = key
        misses += 1
    return misses


@njit(nogil=True, cache=True)
def by_bucket(rows, missing, buckets, grouped):  # type: ignore[no-untyped-def]
    """Group the missing rows by HBM bucket, each bucket's in their order (a counting sort)."""
    start = np.zeros(buckets + 1, np.int64)
    for key in missing:
        start[rows[key, HOME] + 1] += 1
    for bucket in range(buckets):
        start[bucket + 1] += start[bucket]
    for key in missing:
        bucket = rows[key, HOME]
        grouped[start[bucket]] = key
        start[bucket] += 1


@njit(nogil=True, cache=True)
def insert_cache(rows, missing, now, hbm, frequency, per_rank, waiting, counts):  # type: ignore[no-untyped-def]
    """CACHING: bring every missing row into HBM; rows of the batch itself are not evicted.

    The host holds every row ever seen: its place is ``slots of HBM`` once evicted or bypassed.
    """
    waits, capacity = 0, hbm[4]
    host = hbm[0].size
    for key in missing:
        bucket = rows[key, HOME]
        rank = bucket // per_rank
        slot, victim, waits = _place(rows, key, bucket, hbm, frequency, now, waiting, waits)
        if slot < 0:
            rows[key, PLACE] = host
            counts[rank, BYPASSED] += 1
            continue
        if victim >= 0:
            rows[victim, PLACE] = host
            counts[rank, EVICTED] += 1
        rows[key, PLACE] = bucket * capacity + slot
    _return(rows, hbm, frequency, waiting, waits)


@njit(nogil=True, cache=True)
def insert_hybrid(  # type: ignore[no-untyped-def]
    rows, missing, hbm, host, home_host, frequency, per_rank, waiting, moved, counts
):
    """HYBRID, HBM_ONLY: new rows go to HBM, what they push out to the host; host rows stay there.

    Rows inserted in this batch are not evicted by it. A row pushed out of a full bucket of the
    host, or out of HBM where there is no host tier, is lost, and new when it comes again.
    """
    waits, leaving, start = 0, 0, hbm[0].size
    for key in missing:
        if rows[key, PLACE] >= start:
            continue
        bucket = rows[key, HOME]
        slot, victim, waits = _place(rows, key, bucket, hbm, frequency, -1, waiting, waits)
        if slot >= 0:
            rows[key, PLACE] = bucket * hbm[4] + slot
        if slot < 0 or victim >= 0:
            moved[leaving] = key if slot < 0 else victim
            leaving += 1
    _return(rows, hbm, frequency, waiting, waits)
    waits = 0
    for i in range(leaving):
        key = moved[i]
        rank = rows[key, HOME] // per_rank
        counts[rank, EVICTED] += 1
        slot, victim = np.int64(-1), np.int64(-1)
        if home_host.size > 0:
            bucket = home_host[key]
            slot, victim, waits = _place(rows, key, bucket, host, frequency, -1, waiting, waits)
        if slot >= 0:
            rows[key, PLACE] = start + home_host[key] * host[4] + slot
        lost = key if slot < 0 else victim
        if lost >= 0:
            rows[lost, PLACE] = -1
            rows[lost, COUNT] = 0
            counts[rank, DROPPED] += 1
    _return(rows, host, frequency, waiting, waits)
