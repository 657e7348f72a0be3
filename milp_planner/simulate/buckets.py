# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""Rows placed in buckets; whom a full one gives up: its lowest scores, queued.

An entry is ``score << 32 | slot``, so that the order of entries is that of leaving: among equal
scores the lowest slot first. A bucket's queue is ``queue[head:]``, ascending. Every slot without
an entry is above ``top`` (the queue's last entry, also while it is empty; −1 before the first) and
stays so, for scores only rise; that a queued row was looked up since is found out when its turn
comes. A queue that runs out is filled anew: from all rows of the bucket, or, where a batch replaces
many, with the slots of the lowest score ``known`` (their rows' when they were placed or last had
their turn, and not lower now), so that only rows whose turn comes are read.

All in one file: Numba's cache does not see a change of a compiled function called from another.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from milp_planner.simulate.prefetch import prefetch

PLACE, STAMP, COUNT, HOME = 0, 1, 2, 3
"""Columns of ``rows``: slot (−1 nowhere, from ``hbm_slots`` on the host), batch of the last
lookup, lookups so far, HBM bucket. A score is a STAMP or a COUNT."""

HEAD, TOP, FILL = 0, 1, 2
"""Columns of a tier's ``state`` of a bucket: its queue's head and top, slots filled."""

NEVER = np.int32(2**31 - 1)
"""Score of a slot that stays."""

ABOVE = np.int64(2**63 - 1)
"""Above every entry."""

STEP = 4
"""Buckets between asking for one's state, its queue, the rows it names, theirs, and using them."""

AHEAD = 16
"""Rows of one bucket between asking for a row and using it."""

SPARE = 1
"""Rows asked for beside those to be replaced: some stay."""

DIGIT = 6
"""Bits by which entries are distributed at a time."""

MANY = 32
"""Entries from which distributing them is faster than comparing them."""

FEW = 4
"""Below 1/4 of a queue counted near the lowest score, all entries are sorted."""


@njit(nogil=True, cache=True)
def _ask_ahead(rows, grouped, start, tier, buckets, i):  # type: ignore[no-untyped-def]
    """Ask for what the buckets after the i-th need first: state, queue, rows queued and coming."""
    held, queues, state = tier.held, tier.queues, tier.state
    capacity, length = len(held) // len(state), queues.shape[1]
    if i + 4 * STEP < len(buckets):
        prefetch(state, buckets[i + 4 * STEP])
    if i + 3 * STEP < len(buckets):
        bucket = buckets[i + 3 * STEP]
        prefetch(queues[bucket], state[bucket, HEAD])
        if state[bucket, FILL] < capacity:
            prefetch(held, bucket * capacity + state[bucket, FILL])
    for near in (False, True):
        ahead = i + (STEP if near else 2 * STEP)
        if ahead >= len(buckets):
            continue
        bucket = buckets[ahead]
        first, head = start[bucket], state[bucket, HEAD]
        last = min(start[bucket + 1], first + AHEAD)
        for j in range(head, min(head + last - first + SPARE, length)):
            place = bucket * capacity + np.int32(queues[bucket, j])
            if near:
                prefetch(rows, held[place])
            else:
                prefetch(held, place)
                prefetch(tier.known, place)  # to no effect where none is kept
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
    capacity = len(tier.held) // len(tier.state)
    found, entries = np.empty(capacity, np.int32), np.empty(capacity, np.int64)
    scratch = np.empty((4, capacity + 1), np.int32)
    left, per_rank = 0, len(tier.state) // len(moved)
    for i in range(len(buckets)):
        _ask_ahead(rows, grouped, start, tier, buckets, i)
        bucket = buckets[i]
        coming = grouped[start[bucket] : start[bucket + 1]]
        base, queue, state = bucket * capacity, tier.queues[bucket], tier.state[bucket]
        head, top, stop = state[HEAD], state[TOP], state[FILL]
        held, known = tier.held[base : base + capacity], tier.known[base : base + capacity]
        room, victims = min(capacity - stop, len(coming)), 0
        for j in range(room):
            found[j] = stop + j
        if room < len(coming):
            victims, head, top = choose(
                rows, held[:stop], known, offset + base, queue, head, top, pinned_at, score, away,
                min(len(coming) - room, stop), found[room:], scratch, entries,
            )  # fmt: skip
            for slot in found[room : room + victims]:
                leaving[left] = held[slot]
                left += 1
            for key in coming[room + victims :]:
                rows[key, PLACE] = away
                leaving[left] = key
                left += 1
        placed = coming[: room + victims]
        low = _fill_slots(rows, held, known, offset + base, placed, found, score, top, entries)
        state[HEAD], state[TOP] = push(queue, head, top, entries[:low])
        state[FILL] += room
        moved[bucket // per_rank, 0] += victims
        moved[bucket // per_rank, 1] += len(coming) - len(placed)
    return left


@njit(nogil=True, cache=True)
def _fill_slots(  # type: ignore[no-untyped-def]
    rows, held, known, base, keys, slots, score, top, entries
):
    """Put rows into slots of a bucket; ``entries`` begins with those up to ``top``, so many."""
    low, last = 0, len(keys) - 1
    for i in range(len(keys)):
        prefetch(rows, keys[min(i + AHEAD, last)])
        key, slot = keys[i], slots[i]
        held[slot] = key
        if len(known):
            known[slot] = rows[key, score]
        rows[key, PLACE] = base + slot
        entry = np.int64(rows[key, score]) << 32 | slot
        entries[low] = entry
        low += entry <= top
    return low


@njit(nogil=True, cache=True)
def choose(  # type: ignore[no-untyped-def]
    rows, held, known, base, queue, head, top, pinned_at, score, away, need, found, scratch, entries
):
    """Find the ``need`` slots of a bucket whose rows go next, to ``away``; they are in ``found``.

    ``held`` are the rows in its slots, ``known`` scores below which theirs are not (NEVER while out
    of turn; may be empty), ``base`` is the place of the first. Rows looked up in batch
    ``pinned_at`` stay. Returns how many were found, and the queue's head and top without them.
    """
    count, pins, risen, end = 0, 0, 0, len(queue)
    pinned, lowest = scratch[0], ABOVE
    while count < need:
        if risen and (head == end or lowest < queue[head]):
            head, top = push(queue, head, top, entries[:risen])
            risen, lowest = 0, ABOVE
        if head == end:
            if need > AHEAD and len(known):
                head = _queue_level(known[: len(held)], queue, scratch[1])
            else:
                head, pins = _queue_all(rows, held, base, queue, pinned_at, score, scratch)
            top = _top(queue, head)
            if head == end:
                break
        if need > AHEAD:
            prefetch(rows, held[np.int32(queue[min(head + AHEAD, end - 1)])])
        queued = queue[head]
        slot = np.uint32(queued)
        key = np.uint32(held[slot])
        value = rows[key, score]
        entry = np.int64(value) << 32 | slot
        stays = rows[key, STAMP] == pinned_at
        goes = (entry == queued) & (not stays)
        back = (entry <= top) & (not goes)
        found[count] = slot
        if len(known):
            known[slot] = value | (NEVER * np.int32(goes | (back & stays)))
        rows[key, PLACE] = away if goes else base + slot
        count += goes
        head += 1
        if back:  # seldom: guessed right
            if stays:
                pinned[pins] = slot
                pins += 1
            else:
                entries[risen] = entry
                lowest = min(lowest, entry)
                risen += 1
    risen = _release(rows, held, known, pinned[:pins], score, top, entries, risen)
    return count, *push(queue, head, top, entries[:risen])


@njit(nogil=True, cache=True)
def _release(  # type: ignore[no-untyped-def]
    rows, held, known, pinned, score, top, entries, size
):
    """Add entries of rows that stayed, up to ``top``; returns how many ``entries`` there are."""
    for slot in pinned:
        value = rows[held[slot], score]
        if len(known):
            known[slot] = value
        entry = np.int64(value) << 32 | slot
        entries[size] = entry
        size += entry <= top
    return size


@njit(nogil=True, cache=True)
def push(queue, head, top, entries):  # type: ignore[no-untyped-def]
    """Queue entries that are not above ``top``; returns the head and the top."""
    if not len(entries):
        return head, top
    if len(entries) >= MANY:
        entries = _sorted_by_digits(entries)
    elif len(entries) > 1:
        entries.sort()
    head = _merge(queue, head, entries)
    return head, _top(queue, head)


@njit(nogil=True, cache=True)
def _sorted_by_digits(entries):  # type: ignore[no-untyped-def]
    """Sort numbers from 0 on (radix sort, lowest digit first); digits all have are passed over."""
    other, starts = np.empty_like(entries), np.empty(1 << DIGIT, np.int64)
    mask, differ = (1 << DIGIT) - 1, np.int64(0)
    for entry in entries:
        differ |= entry ^ entries[0]
    for shift in range(0, 63, DIGIT):
        if not differ >> shift & mask:
            continue
        starts[:] = 0
        for entry in entries:
            starts[entry >> shift & mask] += 1
        total = 0
        for digit in range(len(starts)):
            starts[digit], total = total, total + starts[digit]
        for entry in entries:
            digit = entry >> shift & mask
            other[starts[digit]] = entry
            starts[digit] += 1
        entries, other = other, entries
    return entries


@njit(nogil=True, cache=True)
def _top(queue, head):  # type: ignore[no-untyped-def]
    """A queue's last entry, −1 if it has none."""
    return queue[-1] if head < len(queue) else np.int64(-1)


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
        ours, theirs = entries[i], queue[j] if j < len(queue) else ABOVE
        first = ours < theirs
        queue[new] = ours if first else theirs
        new += 1
        i += first
        j += not first
    return head - count


@njit(nogil=True, cache=True)
def _queue_level(known, queue, chosen):  # type: ignore[no-untyped-def]
    """Queue the slots of the lowest score known: none without an entry can be below.

    Returns the head.
    """
    low, front = NEVER, np.uint64(0)
    for slot in range(len(known)):
        low = min(low, known[slot])
    if low == NEVER:
        return len(queue)
    for slot in range(len(known)):
        chosen[front] = slot
        front += np.uint64(known[slot] == low)
    size = min(np.int64(front), len(queue))
    head = len(queue) - size
    for i in range(size):
        queue[head + i] = np.int64(low) << 32 | chosen[i]
    return head


@njit(nogil=True, cache=True)
def _queue_all(rows, held, base, queue, pinned_at, score, scratch):  # type: ignore[no-untyped-def]
    """Queue a bucket's lowest scores; returns the head, and how many rows stay.

    Their slots are at the front of ``scratch[0]``. They are not queued, nor are slots whose row has
    left ``base + slot`` already.
    """
    size, pins, low = len(held), 0, NEVER
    pinned, scores, stays, _ = scratch[:, : size + 1]
    for slot in range(size):  # only loads that may miss the cache
        key = held[slot]
        prefetch(rows, held[min(slot + AHEAD, size - 1)])
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
