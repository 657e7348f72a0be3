"""How often each key of a table is looked up: individually known keys, then uniform ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.errors import RoutingError
from cuda_routing.rules import Int64Array

FloatArray = NDArray[np.float64]

HEAD = 1 << 16
TAIL_SEGMENTS = 512


def _no_floats() -> FloatArray:
    return np.zeros(0)


def _no_ids() -> Int64Array:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class KeyLoad:
    """Each key's share of a table's lookups; the shares add up to 1.

    Attributes
    ----------
    keys, shares : arrays [K]
        Individually known keys and their shares of the lookups.
    starts, stops, segment_shares : arrays [S]
        Ranges of ids, start ≤ id < stop, with their shares, which are uniform within a range.
    rows : int
        Ids run from 0 to rows − 1; 0 when unknown.
    name : str
        Name in tables and plots.
    """

    keys: Int64Array
    shares: FloatArray
    starts: Int64Array = field(default_factory=_no_ids)
    stops: Int64Array = field(default_factory=_no_ids)
    segment_shares: FloatArray = field(default_factory=_no_floats)
    rows: int = 0
    name: str = "keys"

    def __post_init__(self) -> None:
        total = float(self.shares.sum() + self.segment_shares.sum())
        if not abs(total - 1.0) < 1e-6:
            raise RoutingError(f"shares of {self.name} must add up to 1, they make {total:.6g}")

    @property
    def hottest_key_share(self) -> float:
        """Share of the lookups of the most frequent key."""
        known = float(self.shares.max()) if self.shares.size else 0.0
        ids = (self.stops - self.starts).astype(np.float64)
        spread = self.segment_shares / np.maximum(ids, 1.0)
        return max(known, float(spread.max()) if spread.size else 0.0)


def uniform(rows: int) -> KeyLoad:
    """All ids from 0 to rows − 1 are looked up equally often."""
    _check_rows(rows)
    if rows <= HEAD:
        ids = np.arange(rows, dtype=np.int64)
        return KeyLoad(ids, np.full(rows, 1.0 / rows), rows=rows, name="uniform")
    edges = np.array([0, rows], dtype=np.int64)
    return KeyLoad(_no_ids(), _no_floats(), edges[:1], edges[1:], np.ones(1), rows, "uniform")


def zipf(rows: int, alpha: float, *, shuffle_seed: int | None = None) -> KeyLoad:
    """The i-th most popular key (from 1) is looked up in proportion to i**−alpha.

    Parameters
    ----------
    rows : int
    alpha : float
        At least 0 (0 is uniform).
    shuffle_seed : int, optional
        None: ids are in order of popularity (id 0 the hottest), as in frequency-sorted
        vocabularies. A seed: hot ids are scattered at random, as in hashed vocabularies.

    Notes
    -----
    The first 2**16 keys are exact; the rest is cut into 512 ranges of ids, each evenly spread, with
    masses from the Euler–Maclaurin formula for the harmonic sum. With a seed, the rest is spread
    evenly over all ids.
    """
    _check_rows(rows)
    if alpha < 0:
        raise RoutingError(f"alpha must not be negative, got {alpha}")
    head = min(rows, HEAD)
    weights = np.arange(1, head + 1, dtype=np.float64) ** -alpha
    keys = np.arange(head, dtype=np.int64)
    edges = np.unique(np.geomspace(head, rows, TAIL_SEGMENTS + 1).round().astype(np.int64))
    edges[0], edges[-1] = head, rows
    masses = _power_sum(edges[:-1], edges[1:], alpha)
    total = weights.sum() + masses.sum()
    starts, stops = edges[:-1], edges[1:]
    if shuffle_seed is not None:
        generator = np.random.default_rng(shuffle_seed)
        keys = generator.choice(rows, size=head, replace=False).astype(np.int64)
        if head < rows:
            starts, stops = np.zeros(1, np.int64), np.full(1, rows, np.int64)
            masses = np.array([masses.sum()])
    if head == rows:
        starts, stops, masses = _no_ids(), _no_ids(), _no_floats()
    name = f"zipf {alpha:g}"
    return KeyLoad(keys, weights / total, starts, stops, masses / total, rows, name)


def strided(rows: int, step: int, offset: int = 0) -> KeyLoad:
    """Only every step-th id from ``offset`` on is looked up, each equally often."""
    _check_rows(rows)
    if step < 1 or not 0 <= offset < rows:
        raise RoutingError(f"a stride needs step ≥ 1 and 0 ≤ offset < rows, got {step}, {offset}")
    count = -(-(rows - offset) // step)
    if count > 1 << 24:
        raise RoutingError(f"{count} strided keys are too many to list: use at most {1 << 24}")
    keys = offset + step * np.arange(count, dtype=np.int64)
    return KeyLoad(keys, np.full(count, 1.0 / count), rows=rows, name=f"every {step}th")


def histogram(keys: Any, counts: Any, *, rows: int = 0, name: str = "histogram") -> KeyLoad:
    """Keys with the number of lookups of each (counts of repeated keys add up).

    Raises
    ------
    RoutingError
        Lengths differ, a count is negative, or all counts are 0.
    """
    ids = np.asarray(keys)
    weights = np.asarray(counts, dtype=np.float64)
    if ids.shape != weights.shape or ids.ndim != 1:
        raise RoutingError(f"{ids.shape} keys do not go with {weights.shape} counts")
    if not weights.size or weights.min() < 0 or weights.sum() == 0:
        raise RoutingError("a histogram needs counts of 0 or more, at least one above 0")
    unique, place = np.unique(ids, return_inverse=True)
    merged = np.bincount(place, weights=weights, minlength=unique.size)
    return KeyLoad(unique, merged / merged.sum(), rows=rows, name=name)


def sample(keys: Any, *, rows: int = 0, name: str = "sample") -> KeyLoad:
    """Keys in the order of lookups, one entry for each lookup."""
    ids = np.asarray(keys).ravel()
    if ids.size == 0:
        raise RoutingError("a key sample must hold at least one key")
    unique, counts = np.unique(ids, return_counts=True)
    return KeyLoad(unique, counts / ids.size, rows=rows, name=name)


def after_dedup(load: KeyLoad, lookups: int) -> tuple[KeyLoad, float]:
    """Expected load when each sender requests each distinct key of its batch once.

    Parameters
    ----------
    load : KeyLoad
    lookups : int
        Lookups of this table in one sender's batch, drawn independently from ``load``.

    Returns
    -------
    KeyLoad
        Shares of the keys that are still sent: 1 − (1 − s)**lookups for a key of share s,
        scaled to 1.
    float
        Share of the lookups that is still sent, in (0, 1].
    """
    if lookups < 1:
        raise RoutingError(f"lookups must be at least 1, got {lookups}")
    ids = np.maximum((load.stops - load.starts).astype(np.float64), 1.0)
    known = _seen(load.shares, lookups)
    spread = ids * _seen(load.segment_shares / ids, lookups)
    total = float(known.sum() + spread.sum())
    kept = KeyLoad(
        load.keys, known / total, load.starts, load.stops, spread / total, load.rows, load.name
    )
    return kept, total / lookups


def _seen(shares: FloatArray, lookups: int) -> FloatArray:
    """Probability that a key of this share appears among the lookups (stable for tiny shares)."""
    clipped = np.minimum(shares, 1.0 - 1e-16)
    return -np.expm1(lookups * np.log1p(-clipped))


def _power_sum(start: Int64Array, stop: Int64Array, alpha: float) -> FloatArray:
    """Sum of i**−alpha for start < i ≤ stop, by Euler–Maclaurin with two corrections.

    References
    ----------
    NIST Digital Library of Mathematical Functions, section 2.10(i).
    """
    a, b = start.astype(np.float64), stop.astype(np.float64)
    if alpha == 1.0:
        integral = np.log(b / a)
    else:
        integral = (b ** (1 - alpha) - a ** (1 - alpha)) / (1 - alpha)
    ends = (b**-alpha - a**-alpha) / 2
    slope = -alpha * (b ** (-alpha - 1) - a ** (-alpha - 1)) / 12
    return integral + ends + slope


def _check_rows(rows: int) -> None:
    if rows < 1:
        raise RoutingError(f"rows must be at least 1, got {rows}")
