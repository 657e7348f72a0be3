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
"""Where a row is found: second axis of ``seen``."""

AHEAD = 256
"""Places and slots of so many rows are read before any is written: loads that miss the cache
overlap, stores that miss it queue."""

NEVER = np.int32(2**31 - 1)
"""Score of a slot that stays."""


@njit(nogil=True, cache=True)
def different(rows, keys, now, unique, before):  # type: ignore[no-untyped-def]
    """De-duplicate and count lookups: a batch's rows, as they come first, and their counts before.

    Returns how many rows they are, and a sum of no meaning: without it the compiler would drop
    the loads ahead.
    """
    size, ahead = 0, 0
    for block in range(0, len(keys), AHEAD):
        part = keys[block : block + AHEAD]
        for key in part:
            ahead += rows[key, PLACE]
        for key in part:
            first = rows[key, STAMP] != now
            unique[size] = key
            before[size] = rows[key, COUNT]
            rows[key, STAMP] = now
            rows[key, COUNT] += 1
            size += first
    return size, ahead


@njit(nogil=True, cache=True)
def look_up(rows, keys, before, now, hbm_slots, rank_of, scores, used, frequency, served, seen):  # type: ignore[no-untyped-def]
    """Where a batch's different rows are found; scores rise.

    ``scores`` holds the score of every slot, HBM's first, and one more that stands for rows without
    a slot; ``used`` the batch of the last lookup where that protects a row and is not its score.
    ``seen[rank, where]`` counts lookups and rows. Leaves the rows found behind ``served`` at the
    front of ``keys``, their buckets at the front of ``before``; returns how many they are, and
    again a sum.
    """
    size, ahead = 0, 0
    for block in range(0, len(keys), AHEAD):
        for key in keys[block : block + AHEAD]:
            ahead += scores[rows[key, PLACE]]
        for i in range(block, min(block + AHEAD, len(keys))):
            key, count = keys[i], rows[keys[i], COUNT]
            place, home = rows[key, PLACE], rows[key, HOME]
            used[place] = now
            scores[place] = count if frequency else now
            where = (place < 0) * NOWHERE + (place >= hbm_slots) * ON_HOST
            seen[rank_of[home], where, 0] += count - before[i]
            seen[rank_of[home], where, 1] += 1
            keys[size] = key
            before[size] = home
            size += where > served
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
def _up_to(scores, limit):  # type: ignore[no-untyped-def]
    """How many scores are at most ``limit``."""
    count, limit = np.int32(0), np.int32(limit)
    for score in scores:
        count += np.int32(score <= limit)
    return count


@njit(nogil=True, cache=True)
def _limit(scores, low, wanted):  # type: ignore[no-untyped-def]
    """The ``wanted``-th lowest score, ``low`` being the lowest: steps that double, then halve."""
    below, limit = low - 1, np.int64(low)
    while _up_to(scores, limit) < wanted:
        below, limit = limit, min(2 * limit - low + 1, np.int64(NEVER))
    while limit - below > 1:
        middle = (below + limit) // 2
        if _up_to(scores, middle) < wanted:
            below = middle
        else:
            limit = middle
    return limit


@njit(nogil=True, cache=True)
def _order(scores, low, limit, chosen):  # type: ignore[no-untyped-def]
    """Sort slots by score, equal ones as they are; their scores lie in ``[low, limit]``."""
    if limit == low:
        return
    before = chosen.copy()
    if limit - low > len(scores):
        chosen[:] = before[np.argsort(scores[before], kind="mergesort")]
        return
    start = np.zeros(limit - low + 2, np.int32)
    for slot in before:
        start[scores[slot] - low + 1] += 1
    for i in range(limit - low):
        start[i + 1] += start[i]
    for slot in before:
        chosen[start[scores[slot] - low]] = slot
        start[scores[slot] - low] += 1


@njit(nogil=True, cache=True)
def _unpinned(scores, used, pinned_at, scratch):  # type: ignore[no-untyped-def]
    """The scores, but ``NEVER`` where the row was looked up in batch ``pinned_at``."""
    for slot in range(len(scores)):
        pinned = np.int32(used[slot] == pinned_at)
        scratch[slot] = scores[slot] | (-pinned & NEVER)
    return scratch[: len(scores)]


@njit(nogil=True, cache=True)
def _lowest(scores, used, pinned_at, frequency, wanted, scratch, found):  # type: ignore[no-untyped-def]
    """Slots of a bucket with the lowest scores, lowest first, in ``found``; returns how many.

    Slots whose row was looked up in batch ``pinned_at``, now, are left out (none if negative):
    in LRU theirs are the highest scores.
    """
    highest = np.int64(NEVER - 1)
    if pinned_at >= 0 and frequency:
        scores = _unpinned(scores, used, pinned_at, scratch)
    elif pinned_at >= 0:
        highest = np.int64(pinned_at - 1)
    wanted = min(wanted, _up_to(scores, highest))
    if wanted == 0:
        return 0
    low = NEVER
    for score in scores:
        low = min(low, score)
    limit, size = _limit(scores, low, wanted), 0
    for slot in range(len(scores)):
        found[size] = slot
        size += scores[slot] <= limit
    _order(scores, low, limit, found[:size])
    return wanted


@njit(nogil=True, cache=True)
def insert(  # type: ignore[no-untyped-def]
    rows, grouped, start, tier, scores, used, offset, pinned_at, frequency, away, leaving, moved
):
    """Place rows grouped by bucket: in free slots, then in those of the lowest scores.

    Rows inserted here push none of each other out. Victims, and rows no slot was left for, get the
    place ``away`` and are listed in ``leaving``; returns how many they are.
    ``moved[rank]`` counts the ones and the others.
    """
    held, fill, capacity = tier
    found, scratch = np.empty((2, capacity + 1), np.int32)
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
            here = slice(offset + base, offset + base + stop)
            need = min(last - first - room, stop)
            victims = _lowest(
                scores[here], used[here], pinned_at, frequency, need, scratch, found[room:]
            )
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
            used[offset + slot] = rows[key, STAMP]
            scores[offset + slot] = rows[key, COUNT if frequency else STAMP]
        fill[bucket] += room
        moved[bucket // per_rank, 0] += victims
        moved[bucket // per_rank, 1] += last - first - room - victims
    for key in leaving[:left]:
        rows[key, PLACE] = away
    return left
