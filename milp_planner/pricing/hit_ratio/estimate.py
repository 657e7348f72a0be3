"""Hit ratio of a table's HBM tier: which formula, curve or stored table applies."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from milp_planner.inputs.access import Access, MissRate, Unknown, Zipf
from milp_planner.inputs.table import Table
from milp_planner.pricing.hit_ratio.batches import overfull_hits
from milp_planner.pricing.hit_ratio.caching import (
    CacheCurve,
    frequency_curve,
    overflow_curve,
    recency_curve,
)
from milp_planner.pricing.hit_ratio.hybrid import HORIZON, grid, hybrid_hits, long_run
from milp_planner.pricing.popularity import popularity
from milp_planner.pricing.units import BoolArray, FloatArray

Source = Literal["formula", "table", "unchecked", "curve", "none"]
"""Where a hit ratio comes from: a formula inside its region, the simulator's stored table, a
formula outside its region, the user's measured curve, or nothing (no statistics: the cache ratio
itself)."""

MOST_SKEWED, STEEPEST = 1.8, 3.0
"""Zipf exponents up to which formulas were checked, and up to which the simulator's table goes."""
SMALLEST = 0.02
"""Cache ratio down to which both were."""
FITS = 0.9
"""HYBRID's fluid holds where a batch's distinct rows take at most this share of HBM; beyond, rows
are followed batch by batch."""


class Tier(NamedTuple):
    """What decides who is in HBM.

    Attributes
    ----------
    mode : str
        HYBRID or CACHING.
    frequency : bool
        Eviction by lookup count (LFU) instead of time of the last lookup (LRU).
    batch : float
        Lookups of the table in a batch of all ranks.
    """

    mode: Literal["HYBRID", "CACHING"]
    frequency: bool
    batch: float


class HitRatios(NamedTuple):
    """Hit ratios of several cache ratios, float array [n] in [0, 1], and their sources [n]."""

    values: FloatArray
    sources: tuple[Source, ...]


def has_statistics(access: Access) -> bool:
    """Whether anything is known of which rows are popular."""
    return not isinstance(access, Unknown)


def tier_of(table: Table, mode: str, batch: float) -> Tier:
    """The tier of a table: only dynamicemb tables may evict by frequency."""
    frequency = table.kind == "dynamicemb" and table.score_strategy == "lfu"
    return Tier("HYBRID" if mode == "HYBRID" else "CACHING", frequency, batch)


def hit_ratios(access: Access, rows: int, ratios: FloatArray, tier: Tier) -> HitRatios:
    """Share of lookups served from HBM when it holds the ratio x of the rows, in a long run.

    A measured miss-rate curve is used as it is (straight lines between its points). Without
    statistics every row is equally popular and the hit ratio is x. CACHING follows
    :mod:`~milp_planner.pricing.hit_ratio.caching`, HYBRID
    :mod:`~milp_planner.pricing.hit_ratio.hybrid` after 30 lookups a row, or
    :mod:`~milp_planner.pricing.hit_ratio.batches` where a batch's distinct rows take more than 0.9
    of HBM. Elsewhere Zipf tables of alpha above 1.8 use the stored table of simulated hit ratios.
    ``unchecked``: x below 0.02, and alpha above 3.

    Parameters
    ----------
    access : Access
    rows : int
        Rows of the whole table; splitting rows and lookups over ranks alike changes nothing.
    ratios : float array [n]
        Cache ratios x.
    tier : Tier
    """
    ratios = np.asarray(ratios, dtype=np.float64)
    if isinstance(access, MissRate):
        return _alike(_measured(access, rows, ratios), "curve")
    if not has_statistics(access):
        return _alike(ratios, "none")
    follow = _hybrid if tier.mode == "HYBRID" else _cached
    values, source = follow(access, rows, ratios, tier), _formula_or_table(access)
    known, overfull = ratios >= SMALLEST, _overfull(access, rows, ratios, tier)
    if source != "formula":
        values = np.where(known & ~overfull, _simulated(access, rows, ratios, tier), values)
    followed: Source = "formula" if source == "table" else source
    pairs = zip((known | (ratios == 0)).tolist(), overfull.tolist(), strict=True)
    sources = ("unchecked" if not ok else followed if over else source for ok, over in pairs)
    return HitRatios(values, tuple(sources))


def unique_hit_ratios(access: Access, rows: int, ratios: FloatArray, tier: Tier) -> FloatArray:
    """Share of a batch's distinct rows that a cache holds as the batch begins; float array [n].

    What a prefetch leaves out: it fetches every missing row once, however often the batch asks for
    it. Popular rows are found more often, so this is at most the hit ratio of the lookups. A
    measured miss-rate curve is taken as TorchRec takes it, of distinct rows. Parameters as in
    :func:`hit_ratios`, for a tier in mode CACHING.
    """
    ratios = np.asarray(ratios, dtype=np.float64)
    if isinstance(access, MissRate):
        return _measured(access, rows, ratios)
    if not has_statistics(access):
        return ratios
    return _cached(access, rows, ratios, tier, unique=True)


def _alike(values: FloatArray, source: Source) -> HitRatios:
    return HitRatios(values, (source,) * len(values))


def _measured(access: MissRate, rows: int, ratios: FloatArray) -> FloatArray:
    scaled = ratios * rows / min(access.working_rows or rows, rows)
    arguments = [0.0, *(x for x, _ in access.points if x > 0)]
    misses = [1.0, *(m for x, m in access.points if x > 0)]
    if access.points[0][0] == 0:
        misses[0] = access.points[0][1]
    return 1.0 - np.interp(scaled, arguments, misses)


def _overfull(access: Access, rows: int, ratios: FloatArray, tier: Tier) -> BoolArray:
    """Where the distinct rows of a batch take more of HYBRID's HBM than the fluid allows."""
    known = popularity(access, rows)
    inner = (ratios > 0) & (ratios < 1) & (tier.mode == "HYBRID")
    return np.asarray(inner & (known.distinct(tier.batch) > FITS * ratios * known.rows))


def _hybrid(access: Access, rows: int, ratios: FloatArray, tier: Tier) -> FloatArray:
    """The fluid, of Zipf from the stored grid; batch by batch where a batch overfills HBM."""
    if isinstance(access, Zipf):
        size, name = float(np.log10(rows)), "lfu" if tier.frequency else "lru"
        batch = (float(np.log10(max(tier.batch / rows, 1e-12))),) if tier.frequency else ()
        values = grid("hybrid.json", name).at((*batch, access.alpha, size), ratios)
    else:
        lookups = tier.batch if tier.frequency else 0.0
        points = (_fluid(access, rows, x, lookups, tier.frequency) for x in ratios.tolist())
        values = np.fromiter(points, np.float64, len(ratios))
    overfull = _overfull(access, rows, ratios, tier)
    if overfull.any():
        values[overfull] = _by_batches(access, rows, tuple(ratios[overfull].tolist()), tier)
    return values


@lru_cache(maxsize=65536)
def _fluid(access: Access, rows: int, ratio: float, batch: float, frequency: bool) -> float:
    known = popularity(access, rows)
    if not 0 < ratio < 1:
        return ratio
    return hybrid_hits(known, ratio * known.rows, HORIZON * known.rows, batch, frequency)


@lru_cache(maxsize=16384)
def _by_batches(access: Access, rows: int, ratios: tuple[float, ...], tier: Tier) -> FloatArray:
    known = popularity(access, rows)
    lookups = long_run(known.rows, tier.batch)
    sizes = np.array(ratios) * known.rows
    return overfull_hits(known, sizes, lookups, tier.batch, tier.frequency)


def _formula_or_table(access: Access) -> Source:
    if not isinstance(access, Zipf) or access.alpha <= MOST_SKEWED:
        return "formula"
    return "table" if access.alpha <= STEEPEST else "unchecked"


def _simulated(access: Access, rows: int, ratios: FloatArray, tier: Tier) -> FloatArray:
    name = f"{tier.mode.lower()}-{'lfu' if tier.frequency else 'lru'}"
    assert isinstance(access, Zipf)
    batch = float(np.log10(max(tier.batch / rows, 1e-12)))
    return grid("simulated.json", name).at((batch, access.alpha), ratios)


def _cached(
    access: Access, rows: int, ratios: FloatArray, tier: Tier, unique: bool = False
) -> FloatArray:
    """Of a cache; one that a batch's distinct rows overfill has a formula of its own."""
    known = popularity(access, rows)
    sizes = ratios * known.rows

    def at(curve: CacheCurve, sizes: FloatArray) -> FloatArray:
        return curve.unique_at(sizes) if unique else curve.hits_at(sizes)

    values = at(_curve(access, rows, tier), sizes)
    overfull = sizes < known.distinct(tier.batch)
    if overfull.any():
        curve = _overflow(access, rows, tier.batch, tuple(np.unique(sizes[overfull]).tolist()))
        values = np.where(overfull, at(curve, sizes), values)
    return values


@lru_cache(maxsize=16384)
def _curve(access: Access, rows: int, tier: Tier) -> CacheCurve:
    known = popularity(access, rows)
    return (frequency_curve if tier.frequency else recency_curve)(known, tier.batch)


@lru_cache(maxsize=16384)
def _overflow(access: Access, rows: int, batch: float, sizes: tuple[float, ...]) -> CacheCurve:
    known = popularity(access, rows)
    batches = round(long_run(known.rows, batch) / batch)
    return overflow_curve(known, np.array(sizes), batch, batches)
