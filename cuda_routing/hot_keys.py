"""Hot keys with unknown ids: the likely load of the busiest rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuda_routing.errors import RoutingError
from cuda_routing.rules import check_ranks

DRAWS = 512
MOST_KEYS = 4096


@dataclass(frozen=True)
class HottestRank:
    """Share of a table's lookups on its busiest rank, over possible placements of the hot keys.

    Attributes
    ----------
    expected, percentile95 : float
        Mean and 95th percentile when each hot key falls on a rank at random (a hash, or
        roundrobin over ids that carry no pattern).
    best : float
        Lower bound for every placement of whole keys: max(1/P, hottest key).
    worst : float
        With all hot keys on one rank.
    """

    expected: float
    percentile95: float
    best: float
    worst: float


def hottest_rank(
    shares: Any, ranks: int, *, tail: float | None = None, seed: int = 0
) -> HottestRank:
    """Busiest rank's share, when the shares of the hot keys are known but not their ids.

    Parameters
    ----------
    shares : array [K]
        Share of the lookups of each hot key; beyond the 4096 hottest they count as tail.
    ranks : int
    tail : float, optional
        Share spread evenly over the ranks; the rest up to 1 when not given.
    seed : int
        Seed of the 512 random placements behind ``expected`` and ``percentile95``.

    Raises
    ------
    RoutingError
        A negative share, or shares and tail above 1.
    """
    ranks = check_ranks(ranks)
    hot = np.sort(np.asarray(shares, dtype=np.float64).ravel())[::-1]
    rest = 1.0 - float(hot.sum()) if tail is None else float(tail)
    if (hot.size and hot[-1] < 0) or rest < -1e-9 or hot.sum() + rest > 1 + 1e-6:
        raise RoutingError("hot-key shares must not be negative and must stay within 1 in total")
    total = float(hot.sum()) + max(rest, 0.0)
    known = hot[:MOST_KEYS]
    even = (total - float(known.sum())) / ranks
    highest = _simulate(known, ranks, seed) + even
    hottest = float(known[0]) if known.size else 0.0
    return HottestRank(
        expected=float(highest.mean()),
        percentile95=float(np.quantile(highest, 0.95)),
        best=max(total / ranks, hottest),
        worst=float(known.sum()) + even,
    )


def _simulate(shares: np.ndarray, ranks: int, seed: int) -> np.ndarray:
    """Highest hot-key load of each random placement, [DRAWS]."""
    if not shares.size or ranks == 1:
        return np.full(DRAWS, float(shares.sum()))
    generator = np.random.default_rng(seed)
    highest = np.empty(DRAWS)
    for draw in range(DRAWS):
        owner = generator.integers(0, ranks, size=shares.size)
        highest[draw] = np.bincount(owner, weights=shares, minlength=ranks).max()
    return highest
