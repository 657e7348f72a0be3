"""Rows in HBM under HYBRID where one batch asks for about as many rows as HBM holds, or more.

The fluid of :mod:`milp_planner.pricing.hit_ratio.hybrid` lets rows come one by one. Here they come
a batch at a time: new rows push out the lowest scores, but none of each other; if they are more
than HBM holds, those looked up first stay and all others leave, popular rows among them. None
returns. Expected numbers of rows are followed by class of popularity, score and slot: rows of equal
score leave in the order of their slots, which is the order in which the rows of the first batch
came.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from milp_planner.pricing.dynamicemb_storage import HBM_BUCKET
from milp_planner.pricing.popularity import Popularity
from milp_planner.pricing.units import BoolArray, FloatArray

CLASS = 1.5
"""Rows whose shares differ by less than this factor are followed as one class."""
SLICES = np.diff(np.geomspace(0.02, 1.0, 7), prepend=0.0)
"""HBM's slots in order, in slices; the first slots change most."""
MOMENTS = 1.6
"""Rows of a batch that came so far are counted after lookups that grow by this factor."""
COUNTS = 8
"""Lookup counts told apart; at more, the less popular row is taken to have fewer."""
GROWTH, FIRST, ROOM = 0.2, 5, 0.2
"""After the first five batches several pass in one step, as long as they take no more than a fifth
of the lookups so far and bring no more rows than a fifth of HBM."""
UNEVEN = np.array([1.150, 0.319]) / np.sqrt(HBM_BUCKET)
"""Rows of a bucket beyond the mean, either way: normal, at the middles of four equal parts."""
ALIKE = 0.01
"""Buckets with the most and the fewest rows that differ by less stand for those between."""


def overfull_hits(
    known: Popularity, sizes: FloatArray, lookups: float, batch: float, frequency: bool
) -> FloatArray:
    """Share of the lookups that HBM serves after a number of lookups, for batches of any size.

    The mean over buckets with more and with fewer rows than the average: where a batch just fits,
    it fits in some buckets only.

    Parameters
    ----------
    known, lookups, batch, frequency
        As :func:`milp_planner.pricing.hit_ratio.hybrid.hybrid_hits`.
    sizes : float array [n]
        Rows HBM holds.

    Returns
    -------
    float array [n]

    Notes
    -----
    Checked against the simulator (``benchmarks/hit-ratio``).
    """
    known = _merged(known)

    def between(sizes: FloatArray, part: float) -> tuple[FloatArray, BoolArray]:
        both = np.concatenate((sizes * (1 - part), sizes * (1 + part)))
        low, high = np.split(_followed(known, both, lookups, batch, frequency), 2)
        return (low + high) / 2, np.abs(high - low) >= ALIKE

    found, apart = between(sizes, UNEVEN[0])
    if apart.any():
        found[apart] = (found[apart] + between(sizes[apart], UNEVEN[1])[0]) / 2
    return found


def _followed(
    known: Popularity, sizes: FloatArray, lookups: float, batch: float, frequency: bool
) -> FloatArray:
    """The same for buckets that are all alike; float array [sizes].

    ``held[score, size, slice, class]`` counts rows, lowest score first.
    """
    capacity, now, least = np.outer(sizes, SLICES), 0.0, float(sizes.min())
    held = np.zeros((COUNTS if frequency else 0, *capacity.shape, len(known.counts)))
    while now < lookups * (1 - 1e-9):
        after = now + _step(known, least, now, batch)
        came = _came(known, least, now, after)
        held, first = (_counted if frequency else _stamped)(held, known, after - now)
        held = _replaced(held, came, capacity, first, frequency)
        now = after
    return np.asarray(held.sum(axis=(0, 2)) @ known.shares)


def _merged(known: Popularity) -> Popularity:
    """Fewer classes, most popular first; rows that are never looked up are left out."""
    used = known.shares > 0
    counts, shares = known.counts[used], known.shares[used]
    group = np.floor(np.log(shares.max() / shares) / np.log(CLASS) + 1e-9).astype(np.int64)
    _, index = np.unique(group, return_inverse=True)
    rows = np.bincount(index, counts).astype(np.float64)
    return Popularity(rows, np.bincount(index, counts * shares) / rows)


def _untouched(known: Popularity, lookups: float | FloatArray) -> FloatArray:
    """Chance that none of some lookups falls on a row of each class, (1 − p)^n."""
    chances = np.log1p(-np.minimum(known.shares, 1 - 1e-16))
    return np.asarray(np.exp(np.multiply.outer(lookups, chances)))


def _step(known: Popularity, size: float, now: float, batch: float) -> float:
    """Lookups until the state is looked at again: one batch, or several where little moves."""
    batches = max(np.floor(GROWTH * now / batch), 1.0) if now >= FIRST * batch else 1.0
    unseen = known.counts * _untouched(known, now)
    while batches > 1 and unseen @ (1 - _untouched(known, batches * batch)) > ROOM * size:
        batches = np.floor(batches / 2)
    return float(batches * batch)


def _came(known: Popularity, size: float, now: float, after: float) -> FloatArray:
    """New rows of each class so far, at growing parts of a step; float array [parts, classes]."""
    whole = after - now
    start = min(SLICES[0] * size, whole)
    parts = start * MOMENTS ** np.arange(np.ceil(np.log(whole / start) / np.log(MOMENTS)))
    unseen = known.counts * _untouched(known, now)
    return unseen * (1 - _untouched(known, np.concatenate(([0.0], parts, [whole]))))


def _stamped(held: FloatArray, known: Popularity, lookups: float) -> tuple[FloatArray, FloatArray]:
    """LRU: rows looked up move to a new highest score, which new rows get, too."""
    stay = _untouched(known, lookups)
    alive = held.sum(axis=(1, 2, 3)) > 1e-6 * held.sum()
    moved = np.concatenate((held[alive] * stay, (held * (1 - stay)).sum(axis=0)[None]))
    first = np.zeros((len(moved), len(stay)))
    first[-1] = 1.0
    return moved, first


def _counted(held: FloatArray, known: Popularity, lookups: float) -> tuple[FloatArray, FloatArray]:
    """LFU: counts rise by Poisson numbers; those of new rows are at least 1."""
    mean = known.shares * lookups
    chance = np.exp(np.outer(np.arange(COUNTS), np.log(mean)) - mean - _log_factorials()[:, None])
    moved = np.zeros_like(held)
    for more in range(COUNTS - 1):
        moved[more:-1] += held[: COUNTS - 1 - more] * chance[more]
    moved[-1] = held.sum(axis=0) - moved[:-1].sum(axis=0)
    first = np.concatenate((chance[1:], np.zeros((1, len(mean)))))
    first[-1] = np.maximum(-np.expm1(-mean) - first.sum(axis=0), 0.0)
    return moved, first / -np.expm1(-mean)


def _replaced(
    held: FloatArray, came: FloatArray, capacity: FloatArray, first: FloatArray, frequency: bool
) -> FloatArray:
    """New rows take free slots, then those of the lowest scores, both in the order of the slots."""
    rows, scores = held.sum(axis=3), len(held)
    # the highest counts are not told apart: there the less popular row leaves first
    highest = np.moveaxis(held[-1], 2, 0)[::-1] if frequency else rows[-1:]
    pools = np.concatenate(((capacity - rows.sum(axis=0))[None], rows[:-1], highest))
    pools = np.maximum(np.moveaxis(pools, 0, 1), 0.0)  # [sizes, levels, slices]
    ends = np.minimum(np.cumsum(pools.reshape(len(pools), -1), axis=1), came[-1].sum())
    taken = np.diff(ends, axis=1, prepend=0.0).reshape(pools.shape)
    deep = int(np.flatnonzero(taken.any(axis=(0, 2)))[-1]) + 1 if taken.any() else 1
    cuts = np.pad(ends[:, : deep * capacity.shape[1]], ((0, 0), (1, 0)))
    arrivals = np.diff(_until(came, cuts), axis=1)
    new = arrivals.reshape(len(pools), deep, *held.shape[2:]).sum(axis=1)
    left = 1 - np.divide(taken, pools, out=np.zeros_like(pools), where=pools > 0)
    lower = np.moveaxis(left[:, 1:scores], 1, 0)[..., None]
    top = np.moveaxis(left[:, scores:], 1, 2)[..., :: -1 if frequency else 1]
    kept = np.concatenate((held[:-1] * lower, (held[-1] * top)[None]))
    return np.asarray(kept + new * first[:, None, None, :])


def _until(came: FloatArray, rows: FloatArray) -> FloatArray:
    """The first so many of the rows that came, by class; float array [..., classes]."""
    total = came.sum(axis=1)
    place = np.clip(np.searchsorted(total, rows, side="right") - 1, 0, len(total) - 2)
    gap = np.maximum(total[place + 1] - total[place], 1e-300)
    share = np.clip((rows - total[place]) / gap, 0.0, 1.0)[..., None]
    return np.asarray(came[place] * (1 - share) + came[place + 1] * share)


@lru_cache(maxsize=1)
def _log_factorials() -> FloatArray:
    """ln k! of each count told apart."""
    return np.asarray(np.cumsum(np.log(np.maximum(np.arange(COUNTS), 1))))
