"""Rows a cache holds (CACHING): least recently used, and least frequently used."""

from __future__ import annotations

import numpy as np

from milp_planner.costs.popularity import Popularity
from milp_planner.costs.units import FloatArray

GRID = 128
"""Characteristic times at which Che's equation is tabulated."""


def recency_curve(known: Popularity) -> tuple[FloatArray, FloatArray]:
    """Cache sizes and hit ratios of LRU over a grid of characteristic times, [GRID + 2] each.

    Che's approximation: a row is cached if it was looked up within the last T lookups, and T fills
    the cache: Σ_k (1 − e^(−p_k T)) = size, hit ratio Σ_k p_k (1 − e^(−p_k T)). De-duplicating
    batches does not change it (a row's last batch is as recent as its last lookup), as long as a
    batch's different rows fit.

    References
    ----------
    H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems: modeling, design and experimental
    results", IEEE JSAC 20(7), 2002, doi:10.1109/JSAC.2002.801752; C. Fricker, P. Robert,
    J. Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 2012.
    """
    used = known.shares > 0
    shares, counts = known.shares[used], known.counts[used]
    shortest, longest = 1e-3 / float(shares.max()), 60.0 / float(shares.min())
    times = np.exp(np.linspace(np.log(shortest), np.log(longest), GRID))
    present = -np.expm1(-np.outer(times, shares))
    sizes = np.concatenate(([0.0], present @ counts, [known.rows]))
    hits = np.concatenate(([0.0], present @ (counts * shares), [1.0]))
    return sizes, np.minimum(hits, 1.0)


def frequency_curve(known: Popularity, batch: float) -> tuple[FloatArray, FloatArray]:
    """Cache sizes and hit ratios of LFU with lookup counts that survive eviction.

    In the long run counts order rows by popularity. But every missing row enters, and stays until
    others come: beside the F most popular rows the cache holds the less popular ones of the last
    batch, F + Σ_{k > F} q_k = size with q_k = 1 − (1 − p_k)^batch, so the hit ratio is
    Σ_{k ≤ F} p_k + Σ_{k > F} p_k q_k.

    Parameters
    ----------
    known : Popularity
    batch : float
        Lookups of the table in a batch of all ranks.
    """
    chance = known.drawn(batch) if batch > 0 else np.zeros_like(known.shares)
    mass = known.counts * known.shares
    inside = np.concatenate(([0.0], np.cumsum(known.counts)))
    hits = np.concatenate(([0.0], np.cumsum(mass)))
    passing = _after(known.counts * chance)
    sizes = np.concatenate(([0.0], inside + passing))
    return sizes, np.concatenate(([0.0], hits + _after(mass * chance)))


def _after(parts: FloatArray) -> FloatArray:
    """Sums over the classes after each boundary; the first is the sum of all."""
    return np.concatenate((np.cumsum(parts[::-1])[::-1], [0.0]))
