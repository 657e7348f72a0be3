# ruff: noqa: PLR0913 - compiled loops take plain arrays, not objects
"""The compiled loops of the tier simulator: look a batch up, group what is missing, place it.

Every slot keeps its row's score, so that the victims of a full bucket are found in one pass over
contiguous scores. All loops are in one file: Numba's cache misses changes of compiled functions
that are called from another file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

PLACE, STAMP, COUNT, HOME = 0, 1, 2, 3
"""Columns of ``rows``: slot (−1: nowhere; from ``hbm_slots`` on: on the host), batch of the last
lookup, lookups so far, HBM bucket. A score is a STAMP or a COUNT."""

IN_HBM, ON_HOST, NOWHERE = 0, 1, 2
"""Where a row is found: second axis of ``seen``."""

NEVER = np.int32(2**31 - 1)
"""Score of a slot that is not to be chosen."""


BLOCK = 256
"""Lookups whose rows are read before any of them is processed."""


@njit(nogil=True, cache=True)
def look_up(  # type: ignore[no-untyped-def]
    rows, scores, keys, now, score, hbm_slots, served, rank_of, missing, homes, seen
):
    """Count a batch's lookups in its rows; list the distinct rows not found up to tier ``served``.

    ``score`` is the column of ``rows`` that is copied to the slot's score. ``seen[rank, where]``
    counts the batch's repeated lookups and its distinct rows. Returns the number of ``missing``
    rows, which are listed in order of first lookup; their HBM buckets are in ``homes``.
    """
    size = np.uint64(0)  # unsigned, so that indexing needs no sign check
    counts, stride = seen.reshape(-1), seen.shape[1] * seen.shape[2]
    places = np.empty(BLOCK, np.int64)
    for start in range(0, len(keys), BLOCK):
        block = keys[start : start + BLOCK]
        for i in range(len(block)):  # short, so that many rows are fetched at once
            places[i] = rows[np.uint64(block[i]), PLACE]
        for i in range(len(block)):
            key, place = np.uint64(block[i]), places[i]
            home = np.uint64(rows[key, HOME])
            first = rows[key, STAMP] != now
            rows[key, STAMP] = now
            rows[key, COUNT] += 1
            where = (place < 0) * NOWHERE + (place >= hbm_slots) * ON_HOST
            scores[np.uint64(place + 1)] = rows[key, score]  # score 0 is for nowhere
            counts[np.uint64(rank_of[home] * stride + where * 2 + first)] += 1
            missing[size] = key
            homes[size] = home
            size += np.uint64(first & (where > served))
    return size


@njit(nogil=True, cache=True)
def by_bucket(keys, homes, start, grouped):  # type: ignore[no-untyped-def]
    """Group rows by bucket, in their order within each bucket (a counting sort).

    Bucket b's rows are in ``grouped[start[b]:start[b + 1]]``. The non-empty buckets, ascending,
    replace the front of ``homes``; returns their number.
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
    busy = 0
    for bucket in range(len(start) - 2):
        if start[bucket + 1] > start[bucket]:
            homes[busy] = bucket
            busy += 1
    return busy


@njit(nogil=True, cache=True)
def insert(  # type: ignore[no-untyped-def]
    rows, grouped, start, buckets, tier, scores, pinned_at, score, away, leaving, moved
):
    """Place rows grouped by bucket: in free slots, then in slots with the lowest scores.

    Rows inserted by this call do not evict each other, and rows looked up in batch ``pinned_at``
    stay. Victims and rows without a slot get the place ``away`` and are listed in ``leaving``;
    returns their number. ``moved[rank]`` counts victims and rows without a slot.
    """
    capacity, per_rank = len(tier.held) // len(tier.filled), len(tier.filled) // len(moved)
    found, left = np.empty(capacity, np.int64), 0
    for bucket in buckets:
        coming = grouped[start[bucket] : start[bucket + 1]]
        base, stop = bucket * capacity, tier.filled[bucket]
        held, place = tier.held[base : base + capacity], tier.first + base
        room = min(capacity - stop, len(coming))
        own = scores[place + 1 : place + 1 + stop]
        victims = choose(rows, held, own, pinned_at, score, len(coming) - room, found)
        for i in range(len(coming)):
            key, slot = coming[i], stop + i
            if i >= room + victims:
                rows[key, PLACE] = away
                leaving[left] = key
                left += 1
                continue
            if i >= room:
                slot = found[i - room]
                leaving[left] = held[slot]
                left += 1
                rows[held[slot], PLACE] = away
            held[slot] = key
            rows[key, PLACE] = place + slot
            scores[place + 1 + slot] = rows[key, score]
        tier.filled[bucket] += room
        moved[bucket // per_rank, 0] += victims
        moved[bucket // per_rank, 1] += len(coming) - room - victims
    return left


@njit(nogil=True, cache=True)
def choose(rows, held, scores, pinned_at, score, need, found):  # type: ignore[no-untyped-def]
    """Choose ``need`` slots of a bucket to evict; lists them in ``found``, in order.

    The lowest score goes first, then the lowest slot; rows looked up in batch ``pinned_at`` stay.
    Returns how many were found; their ``scores`` are set to NEVER.
    """
    pins, pinned, count = np.empty(len(scores), np.int64), 0, 0
    while count < need and len(scores):
        low = scores.min()
        if low == NEVER:
            break
        for slot in range(len(scores)):
            if count == need:
                break
            if scores[slot] != low:
                continue
            scores[slot] = NEVER
            if pinned_at >= 0 and rows[held[slot], STAMP] == pinned_at:
                pins[pinned] = slot
                pinned += 1
            else:
                found[count] = slot
                count += 1
    for slot in pins[:pinned]:
        scores[slot] = rows[held[slot], score]
    return count


@njit(nogil=True, cache=True)
def send(leaving, home_of, keys, homes):  # type: ignore[no-untyped-def]
    """Copy leaving rows to ``keys``, and their target buckets to ``homes``."""
    for i in range(len(leaving)):
        keys[i] = leaving[i]
        homes[i] = home_of[leaving[i]]
