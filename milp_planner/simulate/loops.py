# ruff: noqa: PLR0913 - compiled loops take plain arrays, and no objects
"""The compiled loops of the tier simulator: a batch's lookups, and its missing rows by bucket.

All that a lookup reads and writes lies in one cache line, that of its row, and lines are asked for
ahead of use. Where a branch would depend on the key, numbers are added up instead: such branches
are guessed wrong too often.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from milp_planner.simulate.buckets import COUNT, HOME, PLACE, STAMP, insert
from milp_planner.simulate.prefetch import prefetch

__all__ = ["COUNT", "HOME", "IN_HBM", "NOWHERE", "ON_HOST", "PLACE", "STAMP"]
__all__ += ["by_bucket", "insert", "look_up", "send"]

IN_HBM, ON_HOST, NOWHERE = 0, 1, 2
"""Where a row is found: second axis of ``seen``."""

AHEAD = 32
"""Lookups between asking for a row and using it."""


@njit(nogil=True, cache=True)
def look_up(rows, keys, now, hbm_slots, served, rank_of, missing, homes, seen):  # type: ignore[no-untyped-def]
    """Count a batch's lookups in its rows; list the different rows found behind ``served``.

    ``seen[rank, where]`` counts lookups of rows met before in the batch, and different rows.
    Returns how many rows are ``missing``, as they come first; their HBM buckets are in ``homes``.
    """
    size, last = np.uint64(0), len(keys) - 1  # unsigned: an index that needs no check of its sign
    counts, stride = seen.reshape(-1), seen.shape[1] * seen.shape[2]
    for i in range(len(keys)):
        prefetch(rows, keys[min(i + AHEAD, last)])
        key = np.uint64(keys[i])
        place, home = rows[key, PLACE], rows[key, HOME]
        first = rows[key, STAMP] != now
        rows[key, STAMP] = now
        rows[key, COUNT] += 1
        where = (place < 0) * NOWHERE + (place >= hbm_slots) * ON_HOST
        counts[np.uint64(rank_of[np.uint64(home)] * stride + where * 2 + first)] += 1
        missing[size] = key
        homes[size] = home
        size += np.uint64(first & (where > served))
    return size


@njit(nogil=True, cache=True)
def by_bucket(keys, homes, start, grouped):  # type: ignore[no-untyped-def]
    """Group rows by bucket, each bucket's in their order (a counting sort).

    Bucket b's end up in ``grouped[start[b]:start[b + 1]]``. The buckets that have any, ascending,
    replace the front of ``homes``; returns how many they are.
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
def send(leaving, home_of, keys, homes):  # type: ignore[no-untyped-def]
    """Copy rows that leave to ``keys``, and the bucket each goes to to ``homes``."""
    last = len(leaving) - 1
    for i in range(len(leaving)):
        prefetch(home_of, leaving[min(i + AHEAD, last)])
        keys[i] = leaving[i]
        homes[i] = home_of[leaving[i]]
