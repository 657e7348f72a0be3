"""Rows in HBM under HYBRID: new rows enter and push the lowest score out, none ever returns.

Who is in HBM is decided while the table fills. The functions follow it as a fluid: time t counts
lookups, a_k(t) is the chance that a row of class k is in HBM, rows are new at rate
p_k e^(−p_k t), and as many leave as enter once HBM is full. Afterwards nothing moves.

It takes milliseconds a point, too long for thousands of tables: ``hybrid.json`` holds it on a grid
for Zipf popularity (made by ``benchmarks/hit-ratio/grid.py``), between whose points pricing draws
straight lines. ``simulated.json`` holds what the simulator measured at skews beyond those the
formulas are claimed for (``benchmarks/hit-ratio/table.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise

import numpy as np

from milp_planner.pricing.popularity import Popularity
from milp_planner.pricing.units import FloatArray

STEPS = 96
"""Time steps from HBM full to the horizon, of geometrically growing length."""
BEFORE = 32
"""Steps in which accesses before that are remembered."""


def hybrid_hits(
    known: Popularity, size: float, lookups: float, batch: float, frequency: bool
) -> float:
    """Share of the lookups that HBM serves after a number of lookups.

    Parameters
    ----------
    known : Popularity
    size : float
        Rows HBM holds.
    lookups : float
        Lookups of the table so far, on all ranks.
    batch : float
        Lookups in a batch.
    frequency : bool
        Scores are lookup counts (LFU) instead of times of the last lookup (LRU).

    Notes
    -----
    Checked against the simulator (``benchmarks/hit-ratio``). The host is taken to hold every row:
    rows lost from its full buckets (a few in a thousand) are left out.
    """
    used = known.shares > 0
    fluid = Popularity(known.counts[used], known.shares[used])
    full = _time_to_see(fluid, size, lookups)
    if full >= lookups:
        present = fluid.counts * -np.expm1(-fluid.shares * lookups)
        return float((fluid.shares * present).sum())
    follow = _by_frequency if frequency else _by_recency
    present = follow(fluid, full, lookups, batch)
    return float((fluid.counts * fluid.shares * present).sum())


def _time_to_see(known: Popularity, rows: float, longest: float) -> float:
    """Lookups until that many different rows were seen; ``longest`` if that comes first."""
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
    """Move the cutoff on until that many rows have left; who they are, and the new cutoff."""
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

    A new row takes the slot of the lowest count, the lowest slot among equals: that is where the
    last batch's new rows are, which it replaces unless they were looked up again. So a row that
    comes late stays only with two lookups in its first batch or one in the next; each that stays
    takes the place of a row seen once while HBM filled, until none of those is left.
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
"""Lookups a row has seen on average when hit ratios are quoted: a long run."""
LEAST_BATCHES = 10.0
"""Batches that are at least behind a long run, however large they are."""

_FOLDER = resources.files("milp_planner.pricing.hit_ratio")


@dataclass(frozen=True, eq=False)
class Grid:
    """Values over a grid.

    Attributes
    ----------
    axes : tuple of float arrays
        Rising points of each axis, the cache ratio last.
    values : float array
        One dimension an axis.
    """

    axes: tuple[FloatArray, ...]
    values: FloatArray

    def at(self, point: tuple[float, ...], ratios: FloatArray) -> FloatArray:
        """Straight lines between the grid's points, level outside; float array [ratios]."""
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
    """Lookups of a table before its hit ratio is quoted: 30 a row, and ten batches at least."""
    return max(HORIZON * rows, LEAST_BATCHES * batch)
