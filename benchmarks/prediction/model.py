"""Predicting a step: the planner's lookup formula on a fitted profile, and two lines for the MLPs.

    embedding = 3 · (bytes / bw(h) · penalty(width) + launch + output · w)       pricing/lookup.py
    h         = Che's hit ratio of the last-level cache             costs/hit_ratio
    bw(h)     = x_eff(h) · hbm + (1 − x_eff(h)) · host_link          the profile's CACHING curve
    dense     = c0 + batch · (c1 + c2 · width) + c3 · spilled        MLPs, concatenation, dispatch

hbm is the bandwidth of rows in the cache, host_link that of rows in DRAM. Fitted to the calibration
points: launch, hbm, host_link, the bytes that starting a row costs (which make the penalties), the
cache's effective size; and c0 to c3. Times of the two tiers add: 1/bw = h/hbm + (1 − h)/host_link.

Two terms are not the planner's. It charges a written output like a row read; w is what writing
costs beyond that. And the concatenation reads and writes every output: ``spilled`` is what of these
bytes the cache does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.prediction.workload import FEATURES, Point
from milp_planner.inputs.access import Zipf
from milp_planner.pricing import lookup
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.profile import Profile, load_profile

ROW_BYTES = np.array([0, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512])
"""Tried: bytes that starting a row costs."""
GRID = np.linspace(0, 1, 21)
"""Hit ratios at which the profile states x_eff."""


@dataclass(frozen=True)
class Fitted:
    """A profile, the cache it sees, and the line of the dense part."""

    profile: Profile
    cache_bytes: float
    row_bytes: float
    write: float
    dense: np.ndarray

    def predict(self, point: Point) -> tuple[float, float]:
        """Seconds of the embedding and of the dense part of a step."""
        profile, load, row = self.profile, point.shape.load, point.width * 4
        x_eff = lookup.efficiency(profile.caching, hit_ratio(point, self.cache_bytes))
        seconds = lookup.forward_seconds(
            np.array([float(load.ids)]), np.array([float(load.bags * row)]), np.array([row]),
            np.array([False]), lookup.tiered_bandwidth(profile, x_eff),
        )  # fmt: skip
        seconds *= penalty(point, self.row_bytes)
        lookup_seconds = float(seconds[0]) + profile.kernel.launch_seconds
        embedding = FEATURES * (lookup_seconds + self.write * load.bags * row)
        return embedding, float(_dense_terms([point], self.cache_bytes)[0] @ self.dense)


def unfitted(profile: Profile, point: Point, cache_bytes: float) -> float:
    """Seconds of the embedding part by the planner's formulas alone, penalty steps included."""
    load, row = point.shape.load, point.width * 4
    x_eff = lookup.efficiency(profile.caching, hit_ratio(point, cache_bytes))
    seconds = lookup.forward_seconds(
        np.array([float(load.ids)]), np.array([float(load.bags * row)]), np.array([row]),
        np.array([False]), lookup.tiered_bandwidth(profile, x_eff),
    )  # fmt: skip
    seconds *= lookup.narrow_penalty(np.array([point.width]), profile.kernel)
    return FEATURES * (float(seconds[0]) + profile.kernel.launch_seconds)


def hit_ratio(point: Point, cache_bytes: float) -> np.ndarray:
    """Che's hit ratio of a cache of so many bytes over the point's Zipf law; shape [1]."""
    share = min(cache_bytes / (point.rows * point.width * 4), 1.0)
    zipf = Zipf(kind="zipf", alpha=point.alpha)
    return hit_ratios(
        zipf, point.rows, np.array([share]), CachePolicy("CACHING", False, 0.0)
    ).values


def penalty(point: Point, row_bytes: float) -> float:
    """What a row's fixed cost adds: 1 + row_bytes over the bytes an id moves."""
    load = point.shape.load
    return 1 + row_bytes * load.ids / load.priced_bytes(point.width)


def fit(points: list[Point], embedding: np.ndarray, dense: np.ndarray) -> Fitted:
    """Least squares of relative errors; size of the cache and cost of a row from a grid.

    Parameters
    ----------
    points : list of Point
    embedding, dense : float array [points]
        Measured seconds of the two parts.
    """
    moved = np.array([FEATURES * p.shape.load.priced_bytes(p.width) for p in points])
    written = np.array([FEATURES * p.batch * p.width * 4 for p in points])
    best: tuple[float, float, float, np.ndarray] | None = None
    for cache in 2.0 ** np.arange(20, 27.01, 0.25):
        hits = np.array([hit_ratio(p, cache)[0] for p in points])
        for row_bytes in ROW_BYTES:
            work = moved * np.array([penalty(p, row_bytes) for p in points])
            calls = np.full(len(points), FEATURES)
            terms = np.stack([calls, work * hits, work * (1 - hits), written], axis=1)
            found, error = _relative_fit(terms, embedding)
            if best is None or error < best[0]:
                best = (error, cache, float(row_bytes), found)
    assert best is not None
    _, cache, row_bytes, (launch, near, far, write) = best
    line, _ = _relative_fit(_dense_terms(points, cache), dense)
    return Fitted(_profile(launch, near, far), cache, row_bytes, write, line)


def _profile(launch: float, near: float, far: float) -> Profile:
    """Seconds a byte in each tier as the profile's bandwidths and CACHING curve."""
    near = min(near, far * 0.999)
    base = load_profile("torchrec-default").to_dict()
    hbm, link = 1 / near, 1 / far
    curve = [(h, (1 / (h * near + (1 - h) * far) - link) / (hbm - link)) for h in GRID]
    points = [[float(h), float(np.clip(x, 0, 1))] for h, x in curve]
    caching = {"over": "hit_ratio", "points": points, "origin": "calibration points"}
    kernel = {**base["kernel"], "launch_seconds": float(launch), "dynamicemb_divisor": 1.0}
    rates = {"hbm": f"{hbm:.0f}B/s", "host_link": f"{link:.0f}B/s", "ddr": f"{link:.0f}B/s"}
    return Profile.from_dict(
        {**base, "name": "fitted", **rates, "kernel": kernel, "caching": caching}
    )


def _dense_terms(points: list[Point], cache_bytes: float) -> np.ndarray:
    joined = [2 * FEATURES * p.batch * p.width * 4 for p in points]
    return np.array(
        [
            [1.0, p.batch, p.batch * p.width, max(held - cache_bytes, 0.0)]
            for p, held in zip(points, joined, strict=True)
        ]
    )


def _relative_fit(terms: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, float]:
    """Non-negative least squares of the relative errors; coefficients and mean square.

    With so few terms the optimum is found by trying which of them are zero.
    """
    scaled, best = terms / seconds[:, None], (np.zeros(terms.shape[1]), 1.0)
    for used in product((False, True), repeat=terms.shape[1]):
        columns = np.flatnonzero(used)
        found, *_ = np.linalg.lstsq(scaled[:, columns], np.ones(len(seconds)), rcond=None)
        error = float(np.mean((scaled[:, columns] @ found - 1) ** 2))
        if (found >= 0).all() and error < best[1]:
            whole = np.zeros(terms.shape[1])
            whole[columns] = found
            best = whole, error
    return best
