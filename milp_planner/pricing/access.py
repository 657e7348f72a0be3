"""From access statistics to what prices need: distinct ids, load of the hot rank."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cuda_routing.balance import rank_loads
from cuda_routing.rules import Rule
from milp_planner.inputs.access import Access, TopIds, Zipf
from milp_planner.pricing.popularity import Popularity, popularity, skewed

DIST_RULES: dict[str, Rule] = {rule.dist_type: rule for rule in Rule}
"""Routing rule of each dist_type."""


def unique_fraction(access: Access, rows: int, lookups: float) -> float:
    """Distinct ids of one rank's batch as a share of its ids.

    The measured value where the model gives one; else the expected number of distinct rows in
    ``lookups`` independent draws, Σ_k 1 − (1 − p_k)^n, over n. Exact under that independence.

    Parameters
    ----------
    lookups : float
        Ids of the table in the batch of one rank.
    """
    if access.unique_fraction is not None:
        return access.unique_fraction
    if lookups <= 1:
        return 1.0
    return popularity(access, rows).distinct(lookups) / lookups


def distinct_rows(access: Access, rows: int, lookups: float, ranks: int) -> float:
    """Expected distinct rows of a global batch.

    Parameters
    ----------
    lookups : float
        Ids of the table in the batch of one rank.
    ranks : int
        Ranks with a batch each.

    Returns
    -------
    float
        Σ_k 1 − (1 − p_k)^(lookups · ranks); where the unique fraction of one batch was measured, at
        most what the batches' own distinct ids add up to.
    """
    total = lookups * ranks
    found = total if total <= 1 else popularity(access, rows).distinct(total)
    if access.unique_fraction is None:
        return found
    return min(found, access.unique_fraction * total)


def hot_share(spread: Popularity, ranks: int) -> float:
    """Share of the lookups on the busiest of P ranks when hot rows fall on ranks at random.

    The larger of two lower estimates of the expected maximum: the hottest row's share p_1 plus an
    even part of the rest, p_1 + (1 − p_1)/P; and mean plus fluctuation,
    1/P + sqrt(2 ln P · s · (1 − 1/P)/P), with s = Σ p_k² − 1/rows the concentration beyond an even
    spread. Never above 1; for an even spread 1/P, or 1/rows where there are fewer rows than ranks.

    Notes
    -----
    The second is the Gaussian estimate of the maximum of P sums with that variance. Tests compare
    both with random placements (:mod:`cuda_routing.hot_keys`).
    """
    if ranks == 1:
        return 1.0
    hottest, even = float(spread.shares[0]), 1.0 / ranks
    if hottest * spread.rows <= 1 + 1e-9:
        return max(hottest, even)
    excess = float((spread.counts * spread.shares**2).sum()) - 1.0 / spread.rows
    wave = np.sqrt(2 * np.log(ranks) * max(excess, 0.0) * even * (1 - even))
    return float(min(max(hottest + (1 - hottest) * even, even + wave), 1.0))


@lru_cache(maxsize=65536)
def rank_factors(
    access: Access, rows: int, ranks: int, dist_type: str, dedup_lookups: float
) -> tuple[float, ...]:
    """Lookups of each rank over the mean, for rows split over ranks.

    Known hot ids load the rank that owns them. The load of hot rows whose ids are not known is
    charged to *every* rank at the size the busiest one is expected to have, since any of them may
    be it; for the ids of a real table it may be less or more. A measured skew replaces the
    statistics.

    Parameters
    ----------
    access : Access
    rows, ranks : int
        Of the table; ranks its rows are split over.
    dist_type : str
        Routing rule; ``continuous`` for TorchRec tables.
    dedup_lookups : float
        Ids of one rank's batch if each distinct id is exchanged once; 0 without deduplication.

    Returns
    -------
    tuple of float
        One factor for all ranks, or one a rank where ids are known.
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
    owned = rank_loads(np.array(known), shares, ranks, DIST_RULES[dist_type], rows=rows)
    return tuple((ranks * (owned + tail)).tolist())


def hot_ids(access: Access) -> tuple[int, ...]:
    """Ids of the most popular rows, most popular first, as far as every one of them is known."""
    if isinstance(access, Zipf):
        return access.hot_ids
    if not isinstance(access, TopIds):
        return ()
    ordered = sorted(access.ids, key=lambda hot: -hot.share)
    ids = [hot.id for hot in ordered]
    stop = ids.index(None) if None in ids else len(ids)
    return tuple(i for i in ids[:stop] if i is not None)
