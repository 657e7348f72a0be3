"""Rows a cache holds (CACHING): least recently used, least frequently used, batch too large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milp_planner.pricing.popularity import Popularity
from milp_planner.pricing.units import FloatArray

GRID = 128
"""Points at which a curve without a closed form is tabulated."""


@dataclass(frozen=True, eq=False)
class CacheCurve:
    """What a cache serves, over its size; float arrays [points], straight lines between them.

    Attributes
    ----------
    sizes : array
        Rows the cache holds, rising from 0.
    hits : array
        Share of the lookups it serves, Σ_k p_k a_k with a_k the chance that it holds row k.
    unique : array
        Share of a batch's distinct rows it holds, Σ_k q_k a_k / Σ_k q_k with
        q_k = 1 − (1 − p_k)^batch. Popular rows count once each, so it is lower than ``hits``.
    """

    sizes: FloatArray
    hits: FloatArray
    unique: FloatArray

    def hits_at(self, sizes: FloatArray) -> FloatArray:
        """Share of the lookups that caches of these sizes serve."""
        return np.interp(sizes, self.sizes, self.hits)

    def unique_at(self, sizes: FloatArray) -> FloatArray:
        """Share of a batch's distinct rows that caches of these sizes hold."""
        return np.interp(sizes, self.sizes, self.unique)


def recency_curve(known: Popularity, batch: float) -> CacheCurve:
    """LRU over a grid of characteristic times.

    Che's approximation: a row is cached if it was looked up within the last T lookups, and T fills
    the cache: a_k = 1 − e^(−p_k T), Σ_k a_k = size. De-duplicating batches does not change it (a
    row's last batch is as recent as its last lookup), as long as a batch's different rows fit.

    Parameters
    ----------
    known : Popularity
    batch : float
        Lookups of the table in a batch of all ranks.

    References
    ----------
    H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems: modeling, design and experimental
    results", IEEE JSAC 20(7), 2002, doi:10.1109/JSAC.2002.801752; C. Fricker, P. Robert,
    J. Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 2012.
    """
    known = _used(known)
    shortest, longest = 1e-3 / float(known.shares.max()), 60.0 / float(known.shares.min())
    times = np.exp(np.linspace(np.log(shortest), np.log(longest), GRID))
    return _tabulated(known, batch, -np.expm1(-np.outer(times, known.shares)))


def frequency_curve(known: Popularity, batch: float) -> CacheCurve:
    """LFU with lookup counts that survive eviction.

    In the long run counts order rows by popularity. But every missing row enters, and stays until
    others come: beside the F most popular rows the cache holds the less popular ones of the last
    batch, F + Σ_{k > F} q_k = size, so a_k = 1 for k ≤ F and q_k beyond.
    """
    chance, wanted = known.drawn(batch), _wanted(known, batch)
    mass = known.counts * known.shares
    sizes, hits, unique = (
        np.concatenate(([0.0], np.concatenate(([0.0], np.cumsum(part))) + _after(part * chance)))
        for part in (known.counts, mass, wanted)
    )
    return CacheCurve(sizes, hits, unique)


def overflow_curve(known: Popularity, sizes: FloatArray, batch: float, batches: int) -> CacheCurve:
    """Caches that the distinct rows of a batch overfill, whatever the score.

    Rows of the batch are protected from each other, so those it finds stay, and missing ones enter
    in the order of their first lookup until no other row is left, after a share τ of the batch.
    From one batch to the next a_k becomes q_k a_k + (1 − a_k) r_k, Σ_k a_k = size, with
    r_k = 1 − (1 − p_k)^(τ·batch). At τ = 1 the cache holds just the last batch. The derivation is
    ours, checked against the simulator.

    Parameters
    ----------
    sizes : float array [points]
        Rows that caches hold, rising, at most the distinct rows of a batch.
    batches : int
        Batches that have passed; it ends earlier where nothing changes any more.
    """
    known = _used(known)
    parts = np.concatenate(([0.0], np.geomspace(1e-9, 1.0, GRID)))
    entered = -np.expm1(np.outer(parts * batch, np.log1p(-np.minimum(known.shares, 1 - 1e-16))))
    chance, held = known.drawn(batch), np.zeros((len(sizes), len(known.counts)))
    for _ in range(batches):
        stay = chance * held
        filled = (stay @ known.counts)[:, None] + ((1 - held) * known.counts) @ entered.T
        after = stay + (1 - held) * _at(entered, filled, sizes)
        before, held = held, after
        if np.abs(held - before).max() < 1e-6:
            break
    hits, wanted = held @ (known.counts * known.shares), held @ _wanted(known, batch)
    return CacheCurve(sizes, np.minimum(hits, 1.0), np.minimum(wanted, 1.0))


def _at(entered: FloatArray, filled: FloatArray, sizes: FloatArray) -> FloatArray:
    """Chances to enter by class where the rows ``filled`` [sizes, parts] reach each size."""
    found = np.empty((len(sizes), entered.shape[1]))
    for row, (rows, size) in enumerate(zip(filled, sizes.tolist(), strict=True)):
        high = int(np.clip(np.searchsorted(rows, size), 1, len(rows) - 1))
        share = (size - rows[high - 1]) / max(rows[high] - rows[high - 1], 1e-300)
        found[row] = entered[high - 1] + np.clip(share, 0.0, 1.0) * (
            entered[high] - entered[high - 1]
        )
    return found


def _tabulated(known: Popularity, batch: float, held: FloatArray) -> CacheCurve:
    """The curve of chances a_k [points, classes], from nothing to all rows."""
    parts = (known.counts, known.counts * known.shares, _wanted(known, batch))
    sizes, hits, unique = (
        np.concatenate(([0.0], values, [1.0])) for values in (held @ np.stack(parts, axis=1)).T
    )
    sizes[-1] = known.rows
    return CacheCurve(sizes, np.minimum(hits, 1.0), np.minimum(unique, 1.0))


def _used(known: Popularity) -> Popularity:
    used = known.shares > 0
    return Popularity(known.counts[used], known.shares[used])


def _wanted(known: Popularity, batch: float) -> FloatArray:
    """Distinct rows of a batch in each class, as shares of all; lookups for a batch of one."""
    wanted = known.counts * (known.drawn(batch) if batch > 1 else known.shares)
    return wanted / wanted.sum()


def _after(parts: FloatArray) -> FloatArray:
    """Sums over the classes after each boundary; the first is the sum of all."""
    return np.concatenate((np.cumsum(parts[::-1])[::-1], [0.0]))
