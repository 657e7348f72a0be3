"""How the lookups of a table fall on its rows and ranks: rows in classes of equal popularity.

One representation serves every statistic a user may have, and every figure derived from it: hit
ratios, distinct rows of a batch, concentration of the load, the hot rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cuda_routing.balance import rank_loads
from cuda_routing.rules import Rule
from milp_planner.inputs.access import (
    Access,
    Histogram,
    MeasuredSkew,
    MissRate,
    TopIds,
    Unknown,
    Zipf,
)
from milp_planner.pricing.units import FloatArray

HEAD = 64
"""Rows of a Zipf table that get a class of their own."""
TAIL = 128
"""Classes for the rest of them, of geometrically growing size."""


@dataclass(frozen=True, eq=False)
class Popularity:
    """Rows in classes, most popular first."""

    counts: FloatArray
    """Rows in each class (may be fractional where shares of rows were given); float array
    [classes]."""
    shares: FloatArray
    """Share of the lookups that *one* row of the class gets; counts · shares sums to 1; float array
    [classes]."""

    @property
    def rows(self) -> float:
        """Rows in all classes."""
        return float(self.counts.sum())

    @property
    def used(self) -> Popularity:
        """The classes that are looked up at all."""
        used = self.shares > 0
        return Popularity(self.counts[used], self.shares[used])

    def drawn(self, lookups: float | FloatArray) -> FloatArray:
        """Chance that a row of each class is among ``lookups`` independent lookups.

        1 − (1 − p)^n, computed without cancellation; float array [..., classes].
        """
        return np.asarray(-np.expm1(self._log_missed(lookups)))

    def untouched(self, lookups: float | FloatArray) -> FloatArray:
        """Chance that none of them falls on such a row, (1 − p)^n; float array [..., classes]."""
        return np.asarray(np.exp(self._log_missed(lookups)))

    def _log_missed(self, lookups: float | FloatArray) -> FloatArray:
        return np.multiply.outer(lookups, np.log1p(-np.minimum(self.shares, 1 - 1e-16)))

    def distinct(self, lookups: float) -> float:
        """Expected number of distinct rows among ``lookups`` independent lookups."""
        return float((self.counts * self.drawn(lookups)).sum())

    def after_dedup(self, lookups: float) -> Popularity:
        """Popularity of what is left when every row of a batch of ``lookups`` counts once."""
        drawn = self.drawn(lookups)
        return Popularity(self.counts, drawn / (self.counts * drawn).sum())

    def without_head(self, rows: int) -> Popularity:
        """Popularity of the other rows when the ``rows`` most popular rows are taken out.

        Classes must hold whole rows where they are cut (they do for Zipf and known ids).
        """
        if rows == 0:
            return self
        before = np.concatenate(([0.0], np.cumsum(self.counts)[:-1]))
        left = np.clip(self.counts - np.clip(rows - before, 0, None), 0, None)
        total = float((left * self.shares).sum())
        if total <= 0:
            return uniform(max(self.rows - rows, 1))
        keep = left > 0
        return Popularity(left[keep], self.shares[keep] / total)

    def head(self, rows: int) -> FloatArray:
        """Shares of the ``rows`` most popular rows, one by one; float array [rows]."""
        ends = np.cumsum(self.counts)
        index = np.searchsorted(ends, np.arange(1, rows + 1) - 0.5)
        return self.shares[np.minimum(index, len(self.shares) - 1)]


def uniform(rows: float) -> Popularity:
    """Every row is looked up equally often."""
    return Popularity(np.array([float(rows)]), np.array([1.0 / rows]))


@lru_cache(maxsize=16384)
def popularity(access: Access, rows: int) -> Popularity:
    """The classes of a table's access statistics; ``unknown`` is uniform."""
    if isinstance(access, Zipf):
        return zipf(rows, access.alpha)
    if isinstance(access, Histogram):
        return _histogram(access, rows)
    if isinstance(access, TopIds):
        return _top_ids(access, rows)
    if isinstance(access, MissRate):
        return _miss_rate(access, rows)
    assert isinstance(access, Unknown)
    return uniform(rows)


def zipf(rows: int, alpha: float) -> Popularity:
    """Zipf's law: row k gets a share proportional to k^−alpha.

    The first 64 rows are exact; the others lie in 128 classes of geometrically growing size whose
    masses come from the Euler–Maclaurin formula with one correction term (NIST Digital Library of
    Mathematical Functions, section 2.10(i)).
    """
    head = min(rows, HEAD)
    weights = np.arange(1, head + 1, dtype=np.float64) ** -alpha
    counts = np.ones(head)
    if rows > head:
        edges = np.rint(np.exp(np.linspace(np.log(head), np.log(rows), TAIL + 1)))
        edges[0], edges[-1] = head, rows
        edges = edges[np.append(True, np.diff(edges) > 0)]
        width = np.diff(edges)
        weights = np.concatenate((weights, _power_sum(edges[:-1], edges[1:], alpha) / width))
        counts = np.concatenate((counts, width))
    return Popularity(counts, weights / (counts * weights).sum())


def skewed(measured: MeasuredSkew, rows: int) -> Popularity:
    """The simplest popularity that explains a measured busiest rank: one hot row, the rest even.

    With load m times the mean on the busiest of P ranks, the hot row's share p satisfies
    p + (1 − p)/P = m/P, so p = (m − 1)/(P − 1), but no less than that of any other row. At another
    number of ranks the same p applies.
    """
    share = min((measured.max_over_mean - 1) / (measured.ranks - 1), 1.0)
    if share * rows <= 1:
        return uniform(rows)
    rest = rows - 1
    return _ordered(np.array([1.0, rest]), np.array([share, (1 - share) / rest]))


def _power_sum(start: FloatArray, stop: FloatArray, alpha: float) -> FloatArray:
    """Sum of k^−alpha over start < k ≤ stop."""
    if alpha == 1.0:
        integral = np.log(stop / start)
    else:
        integral = (stop ** (1 - alpha) - start ** (1 - alpha)) / (1 - alpha)
    return integral + (stop**-alpha - start**-alpha) / 2


def _histogram(access: Histogram, rows: int) -> Popularity:
    bins = np.array([pair for pair in access.bins if pair[0] > 0], dtype=np.float64)
    counts = bins[:, 0] / bins[:, 0].sum() * rows
    mass = bins[:, 1] / bins[:, 1].sum()
    return _ordered(counts, mass / counts)


def _top_ids(access: TopIds, rows: int) -> Popularity:
    shares = np.sort(np.array([hot.share for hot in access.ids]))[::-1]
    left = max(1.0 - float(shares.sum()), 0.0)
    rest = max(rows - len(shares), 1)
    counts = np.concatenate((np.ones(len(shares)), [rest]))
    return _ordered(counts, np.concatenate((shares / (shares.sum() + left), [left / rest])))


def _miss_rate(access: MissRate, rows: int) -> Popularity:
    """Classes between the points of the curve, read as that of an ideal cache.

    Misses of a cache that holds every row are first accesses: they fall evenly on all rows.
    """
    ratio = np.array([0.0, *(x for x, _ in access.points if x > 0), 1.0])
    miss = np.array([1.0, *(m for x, m in access.points if x > 0), access.points[-1][1]])
    ratio, first = np.unique(ratio, return_index=True)
    miss = miss[first]
    counts = np.diff(ratio) * min(access.working_rows or rows, rows)
    mass = np.clip(miss[:-1] - miss[1:], 0, None) + miss[-1] * np.diff(ratio)
    rest = rows - counts.sum()
    if rest > 0:
        counts, mass = np.append(counts, rest), np.append(mass, 0.0)
    return _ordered(counts, mass / mass.sum() / counts)


def _ordered(counts: FloatArray, shares: FloatArray) -> Popularity:
    order = np.argsort(-shares, kind="stable")
    return Popularity(counts[order], shares[order])


def unique_fraction(access: Access, rows: int, lookups: float) -> float:
    """Distinct ids of one rank's batch of ``lookups`` lookups, as a share of its ids.

    The measured value where the model gives one; else the expected number of distinct rows in
    ``lookups`` independent draws, Σ_k 1 − (1 − p_k)^n, over n. Exact under that independence.
    """
    if access.unique_fraction is not None:
        return access.unique_fraction
    if lookups <= 1:
        return 1.0
    return popularity(access, rows).distinct(lookups) / lookups


def distinct_rows(access: Access, rows: int, lookups: float, ranks: int) -> float:
    """Expected distinct rows of a global batch, ``lookups`` on each of ``ranks``.

    Σ_k 1 − (1 − p_k)^(lookups · ranks); where the unique fraction of one batch was measured, at
    most the sum of the batches' own distinct ids.
    """
    total = lookups * ranks
    found = total if total <= 1 else popularity(access, rows).distinct(total)
    if access.unique_fraction is None:
        return found
    return min(found, access.unique_fraction * total)


def hot_share(spread: Popularity, ranks: int) -> float:
    """Share of the lookups on the busiest of P ranks when hot rows fall on ranks at random.

    The larger of two estimates of the expected maximum. One is the hottest row's share p_1 plus an
    even part of the rest, p_1 + (1 − p_1)/P. The other is the mean plus a fluctuation, 1/P + sqrt(2
    ln P · s · (1 − 1/P)/P), where s = Σ p_k² − 1/rows is the concentration beyond an even spread:
    the Gaussian estimate of the maximum of P sums with that variance. Never above 1; for an even
    spread 1/P, or 1/rows where there are fewer rows than ranks. Tests compare both with random
    placements (:mod:`cuda_routing.hot_keys`).
    """
    if ranks == 1:
        return 1.0
    hottest, even = float(spread.shares[0]), 1.0 / ranks
    if hottest * spread.rows <= 1 + 1e-9:
        return max(hottest, even)
    shares = np.minimum(spread.shares, 1.0)  # a class of less than one row has a larger one
    excess = float((spread.counts * shares**2).sum()) - 1.0 / spread.rows
    wave = np.sqrt(2 * np.log(ranks) * max(excess, 0.0) * even * (1 - even))
    return float(min(max(hottest + (1 - hottest) * even, even + wave), 1.0))


@lru_cache(maxsize=65536)
def rank_factors(
    access: Access,
    rows: int,
    ranks: int,
    dist_type: str,
    dedup_lookups: float,
    index_type: str = "int64",
) -> tuple[float, ...]:
    """Lookups of each rank over the mean, for rows split over ranks; one factor if all are alike.

    Known hot ids load the rank that owns them. The load of hot rows whose ids are not known is
    charged to *every* rank at the size the busiest one is expected to have, since any of them may
    be it; for the ids of a real table it may be less or more. A measured skew replaces the
    statistics. ``dist_type`` is ``continuous`` for TorchRec tables; ``dedup_lookups`` the ids of
    one rank's batch if each distinct id is exchanged once, else 0; ``index_type`` is the type of
    the ids (dynamicemb hashes int32 ids to other ranks).
    """
    measured = access.measured_skew
    spread = skewed(measured, rows) if measured is not None else popularity(access, rows)
    known = () if measured is not None else hot_ids(access)
    if dedup_lookups > 0:
        spread = spread.after_dedup(dedup_lookups)
    shares = spread.head(len(known))
    rest = max(1.0 - float(shares.sum()), 0.0)
    tail = rest * hot_share(spread.without_head(len(known)), ranks)
    if not known:
        return (ranks * tail,)
    rule = Rule.parse(dist_type)
    owned = rank_loads(np.array(known), shares, ranks, rule, rows=rows, index_type=index_type)
    return tuple((ranks * (owned + tail)).tolist())


def hot_ids(access: Access) -> tuple[int, ...]:
    """Ids of the most popular rows, most popular first, up to the first unknown one."""
    if isinstance(access, Zipf):
        return access.hot_ids
    if not isinstance(access, TopIds):
        return ()
    ordered = sorted(access.ids, key=lambda hot: -hot.share)
    ids = [hot.id for hot in ordered]
    stop = ids.index(None) if None in ids else len(ids)
    return tuple(i for i in ids[:stop] if i is not None)
