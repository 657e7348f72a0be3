"""Hit ratio of a table's HBM tier: which formula, curve or stored table applies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from milp_planner.inputs.access import Access, MissRate, Unknown, Zipf
from milp_planner.inputs.table import Table
from milp_planner.pricing.hybrid import HORIZON, grid, hybrid_hits, long_run, overfull_hits
from milp_planner.pricing.popularity import Popularity, popularity
from milp_planner.pricing.units import BoolArray, FloatArray

GRID = 128
"""Points at which a curve without a closed form is tabulated."""


@dataclass(frozen=True, eq=False)
class CacheCurve:
    """Hit ratios of a cache over its size; float arrays [points], linear between points."""

    sizes: FloatArray
    """Rows the cache holds, rising from 0."""
    hits: FloatArray
    """Share of the lookups it serves, Σ_k p_k a_k with a_k the chance that it holds row k."""
    unique: FloatArray
    """Share of a batch's distinct rows it holds, Σ_k q_k a_k / Σ_k q_k with q_k = 1 − (1 −
    p_k)^batch. Popular rows count once each, so it is lower than ``hits``."""

    def hits_at(self, sizes: FloatArray) -> FloatArray:
        """Share of the lookups that caches of these sizes serve."""
        return np.interp(sizes, self.sizes, self.hits)

    def unique_at(self, sizes: FloatArray) -> FloatArray:
        """Share of a batch's distinct rows that caches of these sizes hold."""
        return np.interp(sizes, self.sizes, self.unique)


def recency_curve(known: Popularity, batch: float) -> CacheCurve:
    """LRU over a grid of characteristic times, with ``batch`` lookups in a batch of all ranks.

    Che's approximation: a row is cached if it was looked up within the last T lookups, and T fills
    the cache: a_k = 1 − e^(−p_k T), Σ_k a_k = size. De-duplicating batches does not change it (a
    row's last batch is as recent as its last lookup), as long as a batch's different rows fit.

    References
    ----------
    H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems: modeling, design and experimental
    results", IEEE JSAC 20(7), 2002, doi:10.1109/JSAC.2002.801752; C. Fricker, P. Robert,
    J. Roberts, "A versatile and accurate approximation for LRU cache performance", ITC 2012.
    """
    known = known.used
    shortest, longest = 1e-3 / float(known.shares.max()), 60.0 / float(known.shares.min())
    times = np.exp(np.linspace(np.log(shortest), np.log(longest), GRID))
    return _tabulated(known, batch, -np.expm1(-np.outer(times, known.shares)))


def frequency_curve(known: Popularity, batch: float) -> CacheCurve:
    """LFU with lookup counts that survive eviction.

    In the long run, counts order rows by popularity. But every missing row enters, and stays until
    others replace it: besides the F most popular rows, the cache holds the less popular ones of the
    last batch, F + Σ_{k > F} q_k = size, so a_k = 1 for k ≤ F and q_k beyond.
    """
    chance, wanted = known.drawn(batch), _wanted(known, batch)
    mass = known.counts * known.shares
    sizes, hits, unique = (
        np.concatenate(([0.0], np.concatenate(([0.0], np.cumsum(part))) + _after(part * chance)))
        for part in (known.counts, mass, wanted)
    )
    return CacheCurve(sizes, hits, unique)


def overflow_curve(known: Popularity, sizes: FloatArray, batch: float, batches: int) -> CacheCurve:
    """Caches smaller than the distinct rows of a batch, under any score, after some batches.

    Rows of a batch cannot evict each other, so those already cached stay, and missing ones enter in
    the order of their first lookup until no other row is left to evict, after a share τ of the
    batch. From one batch to the next a_k becomes q_k a_k + (1 − a_k) r_k, Σ_k a_k = size, with r_k
    = 1 − (1 − p_k)^(τ·batch). At τ = 1 the cache holds just the last batch. The derivation is ours,
    checked against the simulator. ``sizes``: rows that caches hold, rising, at most the distinct
    rows of a batch; float array [points].
    """
    known = known.used
    parts = np.concatenate(([0.0], np.geomspace(1e-9, 1.0, GRID)))
    entered = known.drawn(parts * batch)
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
    """Chance of each class to enter until the rows ``filled`` [sizes, parts] reach each size."""
    found = np.empty((len(sizes), entered.shape[1]))
    for row, (rows, size) in enumerate(zip(filled, sizes.tolist(), strict=True)):
        high = min(max(int(rows.searchsorted(size)), 1), len(rows) - 1)  # np.clip takes longer
        share = float((size - rows[high - 1]) / max(rows[high] - rows[high - 1], 1e-300))
        step = entered[high] - entered[high - 1]
        found[row] = entered[high - 1] + min(max(share, 0.0), 1.0) * step
    return found


def _tabulated(known: Popularity, batch: float, held: FloatArray) -> CacheCurve:
    """The curve of the chances ``held``, a_k [points, classes], from no rows to all."""
    parts = (known.counts, known.counts * known.shares, _wanted(known, batch))
    sizes, hits, unique = (
        np.concatenate(([0.0], values, [1.0])) for values in (held @ np.stack(parts, axis=1)).T
    )
    sizes[-1] = known.rows
    return CacheCurve(sizes, np.minimum(hits, 1.0), np.minimum(unique, 1.0))


def _wanted(known: Popularity, batch: float) -> FloatArray:
    """Share of each class in a batch's distinct rows; in the lookups, for a batch of one."""
    wanted = known.counts * (known.drawn(batch) if batch > 1 else known.shares)
    return wanted / wanted.sum()


def _after(parts: FloatArray) -> FloatArray:
    """Sums over the classes after each boundary; the first is the sum of all."""
    return np.concatenate((np.cumsum(parts[::-1])[::-1], [0.0]))


Source = Literal["formula", "table", "unchecked", "curve", "none"]
"""Where a hit ratio comes from: a formula inside its region, the simulator's stored table, a
formula outside its region, the user's measured curve, or nothing (no statistics: the cache ratio
itself)."""

FORMULA_ALPHA, TABLE_ALPHA = 1.8, 3.0
"""Largest Zipf exponents for which the formulas were checked, and which the simulator's table
covers."""
SMALLEST = 0.02
"""Smallest cache ratio for which the formulas were checked, and which the table covers."""
FITS = 0.9
"""HYBRID's fluid model is valid while a batch's distinct rows take at most this share of HBM;
beyond it, rows are followed batch by batch."""


class CachePolicy(NamedTuple):
    """What decides which rows are in HBM."""

    mode: Literal["HYBRID", "CACHING"]
    """HYBRID or CACHING."""
    frequency: bool
    """Eviction by lookup count (LFU) instead of time of the last lookup (LRU)."""
    batch: float
    """Lookups of the table in a batch of all ranks."""


class HitRatios(NamedTuple):
    """Hit ratios of several cache ratios, float array [n] in [0, 1], and their sources [n]."""

    values: FloatArray
    sources: tuple[Source, ...]


def has_statistics(access: Access) -> bool:
    """Whether the user gave any statistics of which rows are popular."""
    return not isinstance(access, Unknown)


def policy_of(table: Table, mode: str, batch: float) -> CachePolicy:
    """The policy of a table: only dynamicemb tables may evict by frequency."""
    frequency = table.evicts_least_frequent
    return CachePolicy("HYBRID" if mode == "HYBRID" else "CACHING", frequency, batch)


def hit_ratios(access: Access, rows: int, ratios: FloatArray, policy: CachePolicy) -> HitRatios:
    """Share of lookups served from HBM when it holds the ratio x of the rows, in a long run.

    A measured miss-rate curve is used as it is (straight lines between its points). Without
    statistics every row is equally popular and the hit ratio is x. CACHING follows the curves of
    this module, HYBRID :func:`~milp_planner.pricing.hybrid.hybrid_hits` after 30 lookups per row,
    or :func:`~milp_planner.pricing.hybrid.overfull_hits` where a batch's distinct rows take more
    than 0.9 of HBM. Elsewhere Zipf tables of alpha above 1.8 use the stored table of simulated hit
    ratios. ``unchecked``: x below 0.02, and alpha above 3.

    ``rows`` are those of the whole table: splitting rows and lookups evenly over ranks changes
    nothing. ``ratios``: float array [n].
    """
    ratios = np.asarray(ratios, dtype=np.float64)
    if isinstance(access, MissRate):
        return _alike(_measured(access, rows, ratios), "curve")
    if not has_statistics(access):
        return _alike(ratios, "none")
    follow = _hybrid if policy.mode == "HYBRID" else _cached
    values, source = follow(access, rows, ratios, policy), _formula_or_table(access)
    known, overfull = ratios >= SMALLEST, _overfull(access, rows, ratios, policy)
    if source != "formula":
        values = np.where(known & ~overfull, _simulated(access, rows, ratios, policy), values)
    followed: Source = "formula" if source == "table" else source
    pairs = zip((known | (ratios == 0)).tolist(), overfull.tolist(), strict=True)
    sources = ("unchecked" if not ok else followed if over else source for ok, over in pairs)
    return HitRatios(values, tuple(sources))


def unique_hit_ratios(
    access: Access, rows: int, ratios: FloatArray, policy: CachePolicy
) -> FloatArray:
    """Share of a batch's distinct rows that a cache holds as the batch begins; float array [n].

    A prefetch need not fetch them; it fetches every missing row once, however often the batch looks
    it up. Popular rows are cached more often, so this is at most the hit ratio of the lookups. As
    in TorchRec, a measured miss-rate curve is read as one of distinct rows. Parameters as in
    :func:`hit_ratios`, for a policy in mode CACHING.
    """
    ratios = np.asarray(ratios, dtype=np.float64)
    if isinstance(access, MissRate):
        return _measured(access, rows, ratios)
    if not has_statistics(access):
        return ratios
    return _cached(access, rows, ratios, policy, unique=True)


def _alike(values: FloatArray, source: Source) -> HitRatios:
    return HitRatios(values, (source,) * len(values))


def _measured(access: MissRate, rows: int, ratios: FloatArray) -> FloatArray:
    scaled = ratios * rows / min(access.working_rows or rows, rows)
    arguments = [0.0, *(x for x, _ in access.points if x > 0)]
    misses = [1.0, *(m for x, m in access.points if x > 0)]
    if access.points[0][0] == 0:
        misses[0] = access.points[0][1]
    return 1.0 - np.interp(scaled, arguments, misses)


def _overfull(access: Access, rows: int, ratios: FloatArray, policy: CachePolicy) -> BoolArray:
    """Where the distinct rows of a batch take more of HYBRID's HBM than the fluid model allows."""
    known = popularity(access, rows)
    inner = (ratios > 0) & (ratios < 1) & (policy.mode == "HYBRID")
    return np.asarray(inner & (known.distinct(policy.batch) > FITS * ratios * known.rows))


def _hybrid(access: Access, rows: int, ratios: FloatArray, policy: CachePolicy) -> FloatArray:
    """Of HYBRID, by the fluid model or, if a batch overfills HBM, batch by batch.

    The stored grid replaces the fluid model for Zipf.
    """
    if isinstance(access, Zipf):
        size, name = float(np.log10(rows)), "lfu" if policy.frequency else "lru"
        batch = (float(np.log10(max(policy.batch / rows, 1e-12))),) if policy.frequency else ()
        values = grid("hybrid.json", name).at((*batch, access.alpha, size), ratios)
    else:
        lookups = policy.batch if policy.frequency else 0.0
        points = (_fluid(access, rows, x, lookups, policy.frequency) for x in ratios.tolist())
        values = np.fromiter(points, np.float64, len(ratios))
    overfull = _overfull(access, rows, ratios, policy)
    if overfull.any():
        values[overfull] = _by_batches(access, rows, tuple(ratios[overfull].tolist()), policy)
    return values


@lru_cache(maxsize=65536)
def _fluid(access: Access, rows: int, ratio: float, batch: float, frequency: bool) -> float:
    known = popularity(access, rows)
    if not 0 < ratio < 1:
        return ratio
    return hybrid_hits(known, ratio * known.rows, HORIZON * known.rows, batch, frequency)


@lru_cache(maxsize=16384)
def _by_batches(
    access: Access, rows: int, ratios: tuple[float, ...], policy: CachePolicy
) -> FloatArray:
    known = popularity(access, rows)
    lookups = long_run(known.rows, policy.batch)
    sizes = np.array(ratios) * known.rows
    return overfull_hits(known, sizes, lookups, policy.batch, policy.frequency)


def _formula_or_table(access: Access) -> Source:
    if not isinstance(access, Zipf) or access.alpha <= FORMULA_ALPHA:
        return "formula"
    return "table" if access.alpha <= TABLE_ALPHA else "unchecked"


def _simulated(access: Access, rows: int, ratios: FloatArray, policy: CachePolicy) -> FloatArray:
    name = f"{policy.mode.lower()}-{'lfu' if policy.frequency else 'lru'}"
    assert isinstance(access, Zipf)
    batch = float(np.log10(max(policy.batch / rows, 1e-12)))
    return grid("simulated.json", name).at((batch, access.alpha), ratios)


def _cached(
    access: Access, rows: int, ratios: FloatArray, policy: CachePolicy, unique: bool = False
) -> FloatArray:
    """Of CACHING; a cache that a batch's distinct rows overfill has a formula of its own."""
    known = popularity(access, rows)
    sizes = ratios * known.rows

    def at(curve: CacheCurve, sizes: FloatArray) -> FloatArray:
        return curve.unique_at(sizes) if unique else curve.hits_at(sizes)

    values = at(_curve(access, rows, policy), sizes)
    overfull = sizes < known.distinct(policy.batch)
    if overfull.any():
        curve = _overflow(access, rows, policy.batch, tuple(np.unique(sizes[overfull]).tolist()))
        values = np.where(overfull, at(curve, sizes), values)
    return values


@lru_cache(maxsize=16384)
def _curve(access: Access, rows: int, policy: CachePolicy) -> CacheCurve:
    known = popularity(access, rows)
    return (frequency_curve if policy.frequency else recency_curve)(known, policy.batch)


@lru_cache(maxsize=16384)
def _overflow(access: Access, rows: int, batch: float, sizes: tuple[float, ...]) -> CacheCurve:
    known = popularity(access, rows)
    batches = round(long_run(known.rows, batch) / batch)
    return overflow_curve(known, np.array(sizes), batch, batches)
