"""How evenly a rule distributes lookups over the ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuda_routing.distributions import FloatArray, KeyLoad
from cuda_routing.errors import RoutingError
from cuda_routing.rules import (
    Int64Array,
    Rule,
    as_index_type,
    block_size_of,
    check_ranks,
    owners,
)


@dataclass(frozen=True)
class Balance:
    """Load of each rank under one rule, and how uneven it is.

    Attributes
    ----------
    rule : Rule
    loads : array [ranks]
        Share of the lookups that each rank serves; their sum is 1.
    hottest_key_share : float
        Share of the lookups of the most frequent key; the busiest rank has at least this load
        under every rule.
    """

    rule: Rule
    loads: FloatArray
    hottest_key_share: float

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return int(self.loads.size)

    @property
    def hottest_rank(self) -> int:
        """Rank with the highest load (the first of equals)."""
        return int(self.loads.argmax())

    @property
    def max_over_mean(self) -> float:
        """Load of the busiest rank over the mean: 1 is even, P is everything on one rank."""
        return float(self.loads.max() * self.ranks)

    @property
    def spread(self) -> float:
        """(max − min) / mean of the loads."""
        return float((self.loads.max() - self.loads.min()) * self.ranks)

    @property
    def max_over_min(self) -> float:
        """Load of the busiest over that of the idlest rank; infinite if a rank serves nothing."""
        low = float(self.loads.min())
        return float(self.loads.max()) / low if low > 0 else float("inf")

    @property
    def gini(self) -> float:
        """Gini coefficient of the loads: 0 is even, 1 − 1/P is everything on one rank."""
        ordered = np.sort(self.loads)
        place = np.arange(1, self.ranks + 1)
        return float(2 * (place * ordered).sum() / (self.ranks * ordered.sum())) - (
            1 + 1 / self.ranks
        )

    def hot_rank_bytes(self, lookups: int, *, key_bytes: int = 8, row_bytes: int = 0) -> int:
        """Bytes that the busiest rank exchanges in one step: keys in, rows out.

        Parameters
        ----------
        lookups : int
            Lookups of the table in the whole (global) batch.
        key_bytes, row_bytes : int
            Size of a key and of an embedding row as sent.
        """
        return round(lookups * float(self.loads.max())) * (key_bytes + row_bytes)


def rank_loads(
    ids: Any,
    shares: Any,
    ranks: int,
    rule: Rule | int | str,
    *,
    rows: int = 0,
    tail: float = 0.0,
    index_type: str | None = None,
) -> FloatArray:
    """Share of the lookups that each rank serves, for individually known keys.

    Parameters
    ----------
    ids, shares : arrays [K]
        Keys, and the share of the lookups of each.
    ranks : int
    rule : Rule, int or str
    rows : int
        Size of the table; needed by ``continuous`` and by ``tail``.
    tail : float
        Share of all other lookups, taken to be even over the rows.
    index_type : str, optional
        Type of the keys at run time; default: the type of ``ids``. dynamicemb's hash_roundrobin
        sends an int32 key to another rank than the same int64 key
        (:func:`cuda_routing.rules.owners`).

    Returns
    -------
    numpy.ndarray of float [ranks]
        Sums to shares.sum() + tail.

    Raises
    ------
    RoutingError
        Lengths differ, or rows are missing where they are needed.
    """
    keys, weights = np.asarray(ids), np.asarray(shares, dtype=np.float64)
    if keys.shape != weights.shape:
        raise RoutingError(f"{keys.shape} ids do not go with {weights.shape} shares")
    rule, ranks = Rule.parse(rule), check_ranks(ranks)
    loads: FloatArray = np.zeros(ranks)
    if keys.size:
        block = _block(rows, ranks) if rule is Rule.CONTINUOUS else None
        typed = keys if index_type is None else as_index_type(keys, index_type)
        as_there = index_type is not None
        owner = owners(typed, ranks, rule, block_size=block, dynamicemb_int32=as_there)
        loads = loads + np.bincount(owner, weights=weights, minlength=ranks)
    if tail:
        everything = np.array([0]), np.array([rows]), np.array([tail])
        loads = loads + _segment_loads(*everything, ranks, rule, rows)
    return loads


def balance(load: KeyLoad, ranks: int, rule: Rule | int | str) -> Balance:
    """Balance of one distribution under one rule.

    Raises
    ------
    RoutingError
        ``continuous`` with a distribution whose number of rows is unknown.
    """
    rule, ranks = Rule.parse(rule), check_ranks(ranks)
    loads = rank_loads(load.keys, load.shares, ranks, rule, rows=load.rows)
    if load.segment_shares.size:
        loads = loads + _segment_loads(
            load.starts, load.stops, load.segment_shares, ranks, rule, load.rows
        )
    return Balance(rule, loads, load.hottest_key_share)


def balances(
    load: KeyLoad, ranks: int, rules: Iterable[Rule | int | str] | None = None
) -> dict[Rule, Balance]:
    """Balance under each rule (by default all, without ``continuous`` if the rows are unknown)."""
    if rules is None:
        rules = [r for r in Rule if r is not Rule.CONTINUOUS or load.rows]
    parsed = [Rule.parse(rule) for rule in rules]
    return {rule: balance(load, ranks, rule) for rule in parsed}


def balance_of_counts(counts: Any, rule: Rule | int | str, hottest_key_share: float) -> Balance:
    """Balance from the lookups counted on each rank, [ranks]."""
    loads = np.asarray(counts, dtype=np.float64)
    if loads.ndim != 1 or loads.size == 0 or loads.sum() <= 0:
        raise RoutingError("counts must be one number per rank, at least one above 0")
    return Balance(Rule.parse(rule), loads / loads.sum(), hottest_key_share)


def _block(rows: int, ranks: int) -> int:
    if rows < 1:
        raise RoutingError("the balance of dist_type continuous needs the number of rows")
    return block_size_of(rows, ranks)


def _segment_loads(
    starts: Int64Array,
    stops: Int64Array,
    shares: FloatArray,
    ranks: int,
    rule: Rule,
    rows: int,
) -> FloatArray:
    """Load of uniform ranges of ids: exact under ``continuous``, assumed even under other
    rules."""
    if rule is not Rule.CONTINUOUS:
        return np.full(ranks, float(shares.sum()) / ranks)
    block = _block(rows, ranks)
    edges = np.minimum(np.arange(ranks + 1, dtype=np.int64) * block, rows)
    covered = np.concatenate([[0.0], np.cumsum(shares)])
    corners = np.concatenate([starts, stops[-1:]]).astype(np.float64)
    return np.diff(np.interp(edges.astype(np.float64), corners, covered))
