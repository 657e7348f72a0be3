"""Rows in HBM under HYBRID: new rows evict those of the lowest score, which never return.

Which rows are in HBM is decided while the table fills. :func:`hybrid_hits` models them as a fluid:
time t counts lookups, a_k(t) is the chance that a row of class k is in HBM, rows are new at rate
p_k e^(−p_k t), and as many leave as enter once HBM is full. Once the table is full, nothing moves.

That takes milliseconds per point, too long for thousands of tables, so ``hybrid.json`` holds
results for Zipf popularity on a grid (made by ``benchmarks/hit-ratio/grid.py``), and pricing
interpolates linearly. ``simulated.json`` holds the simulator's hit ratios at skews for which the
formulas are not valid (``benchmarks/hit-ratio/table.py``).

:func:`overfull_hits` is for batches that look up about as many rows as HBM holds, or more. There,
rows arrive a batch at a time: new rows evict the lowest scores, but not each other; if they are
more than HBM holds, those looked up first stay and all others leave, popular rows included. The
model follows expected numbers of rows by class of popularity, score and slot: rows of equal score
leave in the order of their slots, which is the order in which the rows of the first batch arrived.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise

import numpy as np

from milp_planner.pricing.popularity import Popularity
from milp_planner.pricing.storage import HBM_BUCKET
from milp_planner.pricing.units import BoolArray, FloatArray

STEPS = 96
"""Time steps from a full HBM to the horizon, of geometrically growing length."""
BEFORE = 32
"""Time steps until HBM is full."""


def hybrid_hits(
    known: Popularity, size: float, lookups: float, batch: float, frequency: bool
) -> float:
    """Share of the lookups that HBM, with room for ``size`` rows, serves after a number of lookups.

    ``lookups`` counts all so far, on all ranks; ``batch`` counts those of a batch; with
    ``frequency``, scores are lookup counts (LFU) instead of times of the last lookup (LRU). Checked
    against the simulator (``benchmarks/hit-ratio``). The host is assumed to hold every row: the few
    in a thousand lost from its full buckets are neglected.
    """
    fluid = known.used
    full = _time_to_see(fluid, size, lookups)
    if full >= lookups:
        present = fluid.counts * -np.expm1(-fluid.shares * lookups)
        return float((fluid.shares * present).sum())
    follow = _by_frequency if frequency else _by_recency
    present = follow(fluid, full, lookups, batch)
    return float((fluid.counts * fluid.shares * present).sum())


def _time_to_see(known: Popularity, rows: float, longest: float) -> float:
    """Lookups until ``rows`` different rows have been seen, at most ``longest``."""
    low, high = 1.0, longest
    if (known.counts * -np.expm1(-known.shares * high)).sum() <= rows:
        return longest
    while high / low > 1 + 1e-9:
        middle = float(np.sqrt(low * high))
        few = (known.counts * -np.expm1(-known.shares * middle)).sum() < rows
        low, high = (middle, high) if few else (low, middle)
    return low


def _times(full: float, lookups: float) -> FloatArray:
    """Ends of the steps: even ones until HBM is full, then geometric ones."""
    before = np.linspace(0.0, full, BEFORE + 1)
    return np.concatenate((before[:-1], np.geomspace(full, lookups, STEPS + 1)))


def _by_recency(known: Popularity, full: float, lookups: float, _batch: float) -> FloatArray:
    """Chance that each class is in HBM under LRU.

    HBM holds the rows whose last lookup is later than a cutoff. A row looked up at time u and in
    HBM since leaves when the cutoff passes u, with density b_k(u) e^(−p_k (t − u)), where
    b_k(u) = p_k · (a_k(u) + e^(−p_k u)) counts lookups that find the row in HBM or bring it there.
    """
    p, counts, times = known.shares, known.counts, _times(full, lookups)
    found = np.empty((len(times), len(p)))
    found[: BEFORE + 1] = p
    present, cutoff = -np.expm1(-p * full), 0.0
    for i in range(BEFORE, len(times) - 1):
        now, after = times[i], times[i + 1]
        entered = np.exp(-p * now) - np.exp(-p * after)
        left, cutoff = _pass(known, found, times, (cutoff, now, after), float(counts @ entered))
        present = np.clip(present + entered - left, 0.0, 1.0)
        found[i + 1] = p * np.minimum(present + np.exp(-p * after), 1.0)
    return present


def _pass(
    known: Popularity,
    found: FloatArray,
    times: FloatArray,
    clock: tuple[float, float, float],
    rows: float,
) -> tuple[FloatArray, float]:
    """Advance the cutoff until ``rows`` rows have left; the rows that left, and the new cutoff."""
    (cutoff, now, after), p = clock, known.shares
    middle, left = (now + after) / 2, np.zeros_like(p)
    while rows > 0 and cutoff < now:
        j = int(np.searchsorted(times, cutoff, side="right")) - 1
        end = min(times[j + 1], now)
        last = found[j] / p * (np.exp(-p * (middle - end)) - np.exp(-p * (middle - cutoff)))
        total = float(known.counts @ last)
        share = min(rows / total, 1.0) if total > 0 else 1.0
        left += share * last
        rows -= share * total
        cutoff += share * (end - cutoff)
        if share < 1:
            break
    return left, cutoff


def _by_frequency(known: Popularity, full: float, lookups: float, batch: float) -> FloatArray:
    """Chance that each class is in HBM under LFU.

    A new row takes the slot of the lowest count, and among equal counts the lowest slot: that of a
    new row of the last batch, unless that row was looked up again. So a row that comes late stays
    only with two lookups in its first batch or one in the next; each row that stays replaces a row
    seen once while HBM filled, until none of those is left.
    """
    p, counts, times = known.shares, known.counts, _times(full, lookups)[BEFORE:]
    rate = np.maximum(p * max(batch, 1e-9), 1e-12)
    stays = 1.0 - rate * np.exp(-2 * rate) / -np.expm1(-rate)
    once = p * full * np.exp(-p * full)
    safe = -np.expm1(-p * full) - once
    passing = np.zeros_like(p)
    for now, after in pairwise(times.tolist()):
        promoted = once * -np.expm1(-p * (after - now))
        once, safe = once - promoted, safe + promoted
        entered = np.exp(-p * now) - np.exp(-p * after)
        kept, pool = entered * stays, float(counts @ once)
        wanted = float(counts @ kept)
        share = min(1.0, pool / wanted) if wanted > 0 else 0.0
        safe = safe + share * kept
        once = once * (1 - (share * wanted / pool if pool > 0 else 0.0))
        passing = entered * (1 - stays) * min(1.0, batch / (after - now))
    return np.clip(safe + once + passing, 0.0, 1.0)


HORIZON = 30.0
"""Average lookups per row before hit ratios are quoted: a long run."""
LEAST_BATCHES = 10.0
"""Fewest batches in a long run, however large they are."""

_FOLDER = resources.files("milp_planner.pricing")


@dataclass(frozen=True, eq=False)
class Grid:
    """Values over a grid."""

    axes: tuple[FloatArray, ...]
    """Rising points of each axis, the cache ratio last."""
    values: FloatArray
    """One dimension per axis; float array."""

    def at(self, point: tuple[float, ...], ratios: FloatArray) -> FloatArray:
        """Values interpolated linearly, constant outside the grid; float array [ratios]."""
        values = self.values
        for axis, coordinate in zip(self.axes[:-1], point, strict=True):
            high = int(np.clip(np.searchsorted(axis, coordinate), 1, len(axis) - 1))
            low, top = axis[high - 1], axis[high]
            share = float(np.clip((coordinate - low) / (top - low), 0.0, 1.0))
            values = (1 - share) * values[high - 1] + share * values[high]
        return np.interp(ratios, self.axes[-1], values)


@lru_cache(maxsize=8)
def grid(file: str, name: str) -> Grid:
    """One of the stored grids, such as ``lfu`` of ``hybrid.json``."""
    document = json.loads((_FOLDER / file).read_text(encoding="utf-8"))[name]
    axes = tuple(np.array(axis, dtype=np.float64) for axis in document["axes"])
    shape = [len(axis) for axis in axes]
    return Grid(axes, np.array(document["values"], dtype=np.float64).reshape(shape) / 1e4)


def long_run(rows: float, batch: float) -> float:
    """Lookups of a table before its hit ratio is quoted: 30 per row, and at least ten batches."""
    return max(HORIZON * rows, LEAST_BATCHES * batch)


CLASS = 1.5
"""Rows whose shares differ by less than this factor are followed as one class."""
SLICES = np.diff(np.geomspace(0.02, 1.0, 7), prepend=0.0)
"""HBM's slots in order, in slices; the first slots change most."""
MOMENTS = 1.6
"""Arrivals within a batch are counted at numbers of lookups that grow by this factor."""
COUNTS = 8
"""Lookup counts distinguished; beyond, the less popular row is assumed to have the lower count."""
LOG_FACTORIALS = np.cumsum(np.log(np.maximum(np.arange(COUNTS), 1)))
GROWTH, FIRST, ROOM = 0.2, 5, 0.2
"""After the first five batches several pass in one step, as long as they take no more than a fifth
of the lookups so far and bring no more rows than a fifth of HBM."""
UNEVEN = np.array([1.150, 0.319]) / np.sqrt(HBM_BUCKET)
"""Relative deviations of a bucket's rows from the mean, up or down: those of a normal distribution,
at the middles of four equal parts."""
ALIKE = 0.01
"""If the hit ratios of full and of empty buckets differ by less, no others are computed."""


def overfull_hits(
    known: Popularity, sizes: FloatArray, lookups: float, batch: float, frequency: bool
) -> FloatArray:
    """Share of the lookups that HBM serves after a number of lookups, for batches of any size.

    The mean over buckets with more and with fewer rows than the average: a batch that just fits
    overall fits only in some buckets. Arguments as in :func:`hybrid_hits`, but with several sizes,
    float array [n]. Checked against the simulator (``benchmarks/hit-ratio``).
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
    """The same if all buckets hold equally many rows; float array [sizes].

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
    counts, shares = known.used.counts, known.used.shares
    group = np.floor(np.log(shares.max() / shares) / np.log(CLASS) + 1e-9).astype(np.int64)
    _, index = np.unique(group, return_inverse=True)
    rows = np.bincount(index, counts).astype(np.float64)
    return Popularity(rows, np.bincount(index, counts * shares) / rows)


def _step(known: Popularity, size: float, now: float, batch: float) -> float:
    """Lookups in the next step: one batch, or several if little changes."""
    batches = max(np.floor(GROWTH * now / batch), 1.0) if now >= FIRST * batch else 1.0
    unseen = known.counts * known.untouched(now)
    while batches > 1 and unseen @ (1 - known.untouched(batches * batch)) > ROOM * size:
        batches = np.floor(batches / 2)
    return float(batches * batch)


def _came(known: Popularity, size: float, now: float, after: float) -> FloatArray:
    """New rows of each class so far, at growing parts of a step; float array [parts, classes]."""
    whole = after - now
    start = min(SLICES[0] * size, whole)
    parts = start * MOMENTS ** np.arange(np.ceil(np.log(whole / start) / np.log(MOMENTS)))
    unseen = known.counts * known.untouched(now)
    return unseen * (1 - known.untouched(np.concatenate(([0.0], parts, [whole]))))


def _stamped(held: FloatArray, known: Popularity, lookups: float) -> tuple[FloatArray, FloatArray]:
    """LRU: rows looked up move to a new highest score, which new rows get, too."""
    stay = known.untouched(lookups)
    alive = held.sum(axis=(1, 2, 3)) > 1e-6 * held.sum()
    moved = np.concatenate((held[alive] * stay, (held * (1 - stay)).sum(axis=0)[None]))
    first = np.zeros((len(moved), len(stay)))
    first[-1] = 1.0
    return moved, first


def _counted(held: FloatArray, known: Popularity, lookups: float) -> tuple[FloatArray, FloatArray]:
    """LFU: counts rise by Poisson numbers; those of new rows are at least 1."""
    mean = known.shares * lookups
    chance = np.exp(np.outer(np.arange(COUNTS), np.log(mean)) - mean - LOG_FACTORIALS[:, None])
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
    # the highest counts are not distinguished: there the less popular row leaves first
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
    """The first ``rows`` of the rows that arrived, by class; float array [..., classes]."""
    total = came.sum(axis=1)
    place = np.clip(np.searchsorted(total, rows, side="right") - 1, 0, len(total) - 2)
    gap = np.maximum(total[place + 1] - total[place], 1e-300)
    share = np.clip((rows - total[place]) / gap, 0.0, 1.0)[..., None]
    return np.asarray(came[place] * (1 - share) + came[place + 1] * share)
