# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""Rows placed in buckets; whom a full one gives up: its lowest scores, queued.

An entry is ``score << 32 | slot``, so that the order of entries is that of leaving: among equal
scores the lowest slot first. A bucket's queue is ``queue[head:]``, ascending. Every slot without an
entry is above the last one and stays so, for scores only rise; that a queued row was looked up
since is found out when its turn comes. A queue that runs out is filled anew.

All in one file: Numba's cache does not see a change of a compiled function called from another.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from milp_planner.simulate.prefetch import prefetch

PLACE, STAMP, COUNT, HOME = 0, 1, 2, 3
"""Columns of ``rows``: slot (−1 nowhere, from ``hbm_slots`` on the host), batch of the last
lookup, lookups so far, HBM bucket. A score is a STAMP or a COUNT."""

NEVER = np.int32(2**31 - 1)
"""Score of a slot that stays."""

STEP = 4
"""Buckets between asking for a queue, for the rows it names, for their state, and using that."""

FEW = 4
"""Below 1/4 of a queue counted near the lowest score, all entries are sorted."""


@njit(nogil=True, cache=True)
def _ask_ahead(rows, grouped, start, tier, buckets, i):  # type: ignore[no-untyped-def]
    """Ask for what the buckets after the i-th need: queues, then rows queued, then their state."""
    held, fill, queues, heads = tier
    capacity, length = len(held) // len(fill), queues.shape[1]
    if i + 3 * STEP < len(buckets):
        bucket = buckets[i + 3 * STEP]
        prefetch(queues[bucket], heads[bucket])
    for near in (False, True):
        ahead = i + (STEP if near else 2 * STEP)
        if ahead >= len(buckets):
            continue
        bucket = buckets[ahead]
        first, last = start[bucket], start[bucket + 1]
        for j in range(heads[bucket], min(heads[bucket] + last - first + 2, length)):
            place = bucket * capacity + np.int32(queues[bucket, j])
            if near:
                prefetch(rows, held[place])
            else:
                prefetch(held, place)
        if near:
            for key in grouped[first:last]:
                prefetch(rows, key)


@njit(nogil=True, cache=True)
def insert(  # type: ignore[no-untyped-def]
    rows, grouped, start, buckets, tier, offset, pinned_at, score, away, leaving, moved
):
    """Place rows grouped by bucket: in free slots, then in those of the lowest scores.

    Rows inserted here push none of each other out. Victims, and rows no slot was left for, get the
    place ``away`` and are listed in ``leaving``; returns how many they are.
    ``moved[rank]`` counts the ones and the others.
    """
    held, fill, queues, heads = tier
    capacity = len(held) // len(fill)
    found, entries = np.empty(capacity, np.int32), np.empty(capacity, np.int64)
    scratch = np.empty((4, capacity + 1), np.int32)
    left, per_rank = 0, len(fill) // len(moved)
    for i in range(len(buckets)):
        _ask_ahead(rows, grouped, start, tier, buckets, i)
        bucket = buckets[i]
        coming = grouped[start[bucket] : start[bucket + 1]]
        stop, base = fill[bucket], bucket * capacity
        slots, queue, head = held[base : base + capacity], queues[bucket], heads[bucket]
        room, victims = min(capacity - stop, len(coming)), 0
        for j in range(room):
            found[j] = stop + j
        if room < len(coming):
            victims, head = choose(
                rows, slots[:stop], offset + base, queue, head, pinned_at, score,
                min(len(coming) - room, stop), found[room:], scratch, entries,
            )  # fmt: skip
            for slot in found[room : room + victims]:
                leaving[left] = slots[slot]
                left += 1
            for key in coming[room + victims :]:
                leaving[left] = key
                left += 1
        placed = room + victims
        for j in range(placed):
            key, slot = coming[j], found[j]
            slots[slot] = key
            rows[key, PLACE] = offset + base + slot
            entries[j] = np.int64(rows[key, score]) << 32 | slot
        heads[bucket] = push(queue, head, entries[:placed])
        fill[bucket] += room
        moved[bucket // per_rank, 0] += victims
        moved[bucket // per_rank, 1] += len(coming) - placed
    for key in leaving[:left]:
        rows[key, PLACE] = away
    return left


@njit(nogil=True, cache=True)
def choose(  # type: ignore[no-untyped-def]
    rows, held, base, queue, head, pinned_at, score, need, found, scratch, entries
):
    """Find the ``need`` slots of a bucket whose rows go next; they are in ``found``.

    ``held`` are the rows in its slots, ``base`` is the place of the first. Rows looked up in batch
    ``pinned_at`` stay. Returns how many were found, and the head of the queue without them.
    """
    count, pins, end = 0, 0, len(queue)
    pinned = scratch[0]
    while count < need:
        if head == end:
            for slot in found[:count]:
                rows[held[slot], PLACE] = -1
            head, pins = _refill(rows, held, base, queue, pinned_at, score, scratch)
            if head == end:
                break
        queued = queue[head]
        slot = np.int32(queued)
        key = held[slot]
        entry = np.int64(rows[key, score]) << 32 | slot
        stays = rows[key, STAMP] == pinned_at
        found[count] = slot
        count += (entry == queued) & (not stays)
        head += 1
        if entry <= queue[end - 1] and (stays or entry != queued):  # seldom: guessed right
            if stays:
                pinned[pins] = slot
                pins += 1
            else:
                entries[0] = entry
                head = push(queue, head, entries[:1])
    for i in range(pins):
        entries[i] = np.int64(rows[held[pinned[i]], score]) << 32 | pinned[i]
    return count, push(queue, head, entries[:pins])


@njit(nogil=True, cache=True)
def push(queue, head, entries):  # type: ignore[no-untyped-def]
    """Queue the entries that are not above the last; returns the head."""
    if head == len(queue):
        return head
    size, last = 0, queue[-1]
    for entry in entries:
        entries[size] = entry
        size += entry <= last
    if size > 1:
        entries[:size].sort()
    return _merge(queue, head, entries[:size])


@njit(nogil=True, cache=True)
def _merge(queue, head, entries):  # type: ignore[no-untyped-def]
    """Merge ascending entries into a queue, without its highest ones if it is full."""
    count = len(entries)
    if count > head:
        over = count - head
        head += over
        if head >= len(queue):
            return len(queue)
        for i in range(len(queue) - 1, head - 1, -1):
            queue[i] = queue[i - over]
        while count and entries[count - 1] > queue[-1]:
            count -= 1
    new, i, j = head - count, 0, head
    while i < count:
        ours, theirs = entries[i], queue[j]
        first = ours < theirs
        queue[new] = ours if first else theirs
        new += 1
        i += first
        j += not first
    return head - count


@njit(nogil=True, cache=True)
def _refill(rows, held, base, queue, pinned_at, score, scratch):  # type: ignore[no-untyped-def]
    """Queue a bucket's lowest scores; returns the head, and how many rows stay.

    Their slots are at the front of ``scratch[0]``. They are not queued, nor are slots whose row has
    left ``base + slot`` already.
    """
    size, pins, low = len(held), 0, NEVER
    pinned, scores, stays, _ = scratch[:, : size + 1]
    for slot in range(size):  # only loads that may miss the cache
        key = held[slot]
        stay = rows[key, STAMP] == pinned_at
        gone = rows[key, PLACE] != base + slot
        stays[slot] = stay
        scores[slot] = rows[key, score] | (NEVER * np.int32(stay | gone))
    for slot in range(size):
        pinned[pins] = slot
        pins += stays[slot]
        low = min(low, scores[slot])
    if low == NEVER:
        return len(queue), pins
    return _queue_lowest(scores[:size], low, queue, scratch[2], scratch[3]), pins


@njit(nogil=True, cache=True)
def _queue_lowest(scores, low, queue, below, chosen):  # type: ignore[no-untyped-def]
    """Queue the lowest scores, ``low`` being the lowest of all: a counting sort of those near it.

    Returns the head.
    """
    most = np.uint32(len(below) - 1)
    below[:] = 0
    for value in scores:
        below[min(np.uint32(value - low), most)] += np.int32(1)
    total, limit = np.int32(0), 0
    while limit < most and total < len(queue):
        total, below[limit] = total + below[limit], total
        limit += 1
    if total < len(queue) // FEW:
        return _queue_sorted(scores, queue)
    total = min(total, len(queue))
    head, count, end = len(queue) - total, 0, low + limit
    for slot in range(len(scores)):
        chosen[count] = slot
        count += scores[slot] < end
    for slot in chosen[:count]:
        distance = np.uint32(scores[slot] - low)
        i = below[distance]
        below[distance] = i + 1
        if i < total:
            queue[head + i] = np.int64(scores[slot]) << 32 | slot
    return head


@njit(nogil=True, cache=True)
def _queue_sorted(scores, queue):  # type: ignore[no-untyped-def]
    """Queue the lowest scores, however far from each other; returns the head."""
    entries, size = np.empty(len(scores), np.int64), 0
    for slot in range(len(scores)):
        entries[size] = np.int64(scores[slot]) << 32 | slot
        size += scores[slot] != NEVER
    entries = np.sort(entries[:size])[: len(queue)]
    head = len(queue) - len(entries)
    queue[head:] = entries
    return head
